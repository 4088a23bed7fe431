"""The same as ../train.py."""

import os
import runpy
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    sys.path[0] = ROOT
    runpy.run_path(os.path.join(ROOT, "train.py"), run_name="__main__")
