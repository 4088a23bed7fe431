# The balanced one: batch size 6, more workers, more prefetch
_base_ = './lss_swin_nuscenes.py'

data = dict(
    samples_per_gpu=6,
    workers_per_gpu=12,
    pin_memory=True,
    persistent_workers=True,
    prefetch_factor=4,
)
