from .deblur_dataset import ClipSampler, DeblurDataset

__all__ = ["ClipSampler", "DeblurDataset"]
