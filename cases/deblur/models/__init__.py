from .spike import SpikeVRT
from .vgg import VGGFeatures

__all__ = ["SpikeVRT", "VGGFeatures"]
