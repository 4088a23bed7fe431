# LSS with a Swin backbone, BEV segmentation, six cameras at 256x704
class_names = ['vehicle', 'pedestrian', 'drivable_area']
input_size = (256, 704)
downsample = 16
grid_config = dict(
    xbound=[-51.2, 51.2, 0.8],
    ybound=[-51.2, 51.2, 0.8],
    zbound=[-10.0, 10.0, 20.0],
    dbound=[1.0, 60.0, 1.0],
)

model = dict(
    backbone=dict(embed_dims=96, depths=(2, 2, 4), num_heads=(3, 6, 12), window_size=8),
    view_transformer=dict(out_channels=64),
    bev_encoder=dict(channels=96, num_convs=4),
    pos_weight=4.0,
)

data = dict(
    samples_per_gpu=4,
    workers_per_gpu=3,
    prefetch_factor=2,
    persistent_workers=False,
    pin_memory=False,
    reduced_decode=False,
    cache_geometry=False,
)

optimizer = dict(lr=2e-4, weight_decay=0.01, base_batch_size=4)  # lr is scaled linearly with the batch size
grad_clip = dict(max_norm=35)
fp16 = dict(loss_scale=512.0, recursive=False)
runner = dict(type='IterBasedRunner', max_iters=60)
evaluation = dict(interval=15, metric='mIoU')
log_config = dict(interval=10)
opencv_num_threads = 0
torch_num_threads = None

# --fault-free NAME: the entries that it replaces
variants = dict(
    workers=dict(data=dict(workers_per_gpu=12, prefetch_factor=4, persistent_workers=True, pin_memory=True)),
    fp16=dict(fp16=dict(recursive=True)),
    eval=dict(evaluation=dict(interval=40)),
    geometry=dict(data=dict(cache_geometry=True)),
    images=dict(data=dict(reduced_decode=True)),
)
