from easydict import EasyDict

_C = EasyDict()
cfg = _C
_C.NET = "wide"  # or "deep", "dense"
