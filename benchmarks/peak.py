"""Runs a program as it is, and writes the most memory that its tensors had on the GPU, by torch's own count.

python benchmarks/peak.py FILE train.py --steps 8
"""

import atexit
import json
import runpy
import sys
from pathlib import Path


def tell(path):
    import torch

    if torch.cuda.is_initialized():
        figures = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
        Path(path).write_text(json.dumps(figures))


if __name__ == "__main__":
    _, told, script, *_ = sys.argv
    atexit.register(tell, told)
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")
