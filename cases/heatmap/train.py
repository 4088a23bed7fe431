"""Shortcut for scripts/training/train.py, so that training can be started from anywhere."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scripts.training.train import main  # noqa: E402

if __name__ == "__main__":
    main()
