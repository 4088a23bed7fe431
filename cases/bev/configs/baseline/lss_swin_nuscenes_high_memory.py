# Twice the batch size
_base_ = './lss_swin_nuscenes.py'

data = dict(samples_per_gpu=8)
