"""floorit finds out why a PyTorch training program is slow, and proves the fix, without editing the script."""

__version__ = "0.1.0.dev0"
