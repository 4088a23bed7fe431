"""The same as ../train.py, where mmsegmentation has it."""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    runpy.run_path(str(ROOT / "train.py"), run_name="__main__")
