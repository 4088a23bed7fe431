# The same at a fifth of the resolution, for machines without a GPU
_base_ = './lss_swin_nuscenes.py'

input_size = (48, 144)
grid_config = dict(
    xbound=[-25.6, 25.6, 0.8],
    ybound=[-25.6, 25.6, 0.8],
    dbound=[1.0, 33.0, 0.5],
)

model = dict(
    backbone=dict(embed_dims=16, depths=(1, 1, 2), num_heads=(1, 2, 4), window_size=4),
    view_transformer=dict(out_channels=16),
    bev_encoder=dict(channels=16, num_convs=2),
)

data = dict(workers_per_gpu=1)
fp16 = None
torch_num_threads = 1  # leave the other cores to the loader

variants = dict(
    workers=dict(data=dict(workers_per_gpu=2, pin_memory=False)),
    fp16=None,
)
