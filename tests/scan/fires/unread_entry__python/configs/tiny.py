base = 4
model = dict(inputs=4, outputs=1)
data = dict(
    samples_per_gpu=base,
    workers_per_gpu=3,  # finds: unread-entry
)
optimizer = dict(lr=2e-4)
runner = {"max_iters": 10}
cudnn_benchmark = True  # finds: unread-entry
