from .restoration import RestorationLoss

__all__ = ["RestorationLoss"]
