"""Automatic batch size."""

import copy

import torch

# GPU memory in GB, from which on: batch size for each image size
TABLE = (
    (20, {416: 64, 640: 32, 1024: 16}),
    (10, {416: 48, 640: 24, 1024: 12}),
    (0, {416: 32, 640: 16, 1024: 8}),
)


def table_batch_size(vram_gb, imgsz):
    row = next(sizes for limit, sizes in TABLE if vram_gb >= limit)
    return row[min((size for size in row if size >= imgsz), default=1024)]


def measured_batch_size(model, criterion, imgsz, vram_gb, amp, fraction=0.7, largest=96):
    """Two trial passes give the memory of one more picture; the batch fills a fraction of the GPU."""
    device = next(model.parameters()).device
    model = copy.deepcopy(model)
    peaks = {}
    for batch in (4, 12):
        torch.cuda.reset_peak_memory_stats(device)
        images = torch.zeros(batch, 3, imgsz, imgsz, dtype=torch.uint8, device=device)
        targets = torch.full((batch, 16, 5), -1.0, device=device)
        with torch.autocast("cuda", torch.float16, enabled=amp):
            outputs = model(images)
        criterion(outputs, targets).backward()
        peaks[batch] = torch.cuda.max_memory_allocated(device)
        model.zero_grad(set_to_none=True)
    per_image = (peaks[12] - peaks[4]) / 8
    fixed = peaks[4] - 4 * per_image
    batch = int((vram_gb * 2**30 * fraction - fixed) / per_image)
    return max(8, min(largest, batch // 8 * 8))
