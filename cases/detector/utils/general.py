"""Boxes, folders, the scalar log."""
import logging
import math
from pathlib import Path

import torch


def xywh2xyxy(x):
    """Center and size to corners; numpy or torch."""
    y = x.clone() if isinstance(x, torch.Tensor) else x.copy()
    y[:, :2] = x[:, :2] - x[:, 2:4] / 2
    y[:, 2:4] = x[:, :2] + x[:, 2:4] / 2
    return y


def xyxy2xywh(x):
    """Corners to center and size; numpy or torch."""
    y = x.clone() if isinstance(x, torch.Tensor) else x.copy()
    y[:, :2] = (x[:, :2] + x[:, 2:4]) / 2
    y[:, 2:4] = x[:, 2:4] - x[:, :2]
    return y


def box_iou(box1, box2):
    """IoU of every box of (N, 4) with every box of (M, 4), corners."""
    area1 = (box1[:, 2:] - box1[:, :2]).prod(1)
    area2 = (box2[:, 2:] - box2[:, :2]).prod(1)
    inter = (torch.min(box1[:, None, 2:], box2[:, 2:]) - torch.max(box1[:, None, :2], box2[:, :2])).clamp(0).prod(2)
    return inter / (area1[:, None] + area2 - inter + 1e-9)


def bbox_ciou(pbox, tbox, eps=1e-7):
    """Complete IoU of matching rows, center and size."""
    p, t = xywh2xyxy(pbox), xywh2xyxy(tbox)
    inter = (torch.min(p[:, 2:], t[:, 2:]) - torch.max(p[:, :2], t[:, :2])).clamp(0).prod(1)
    union = pbox[:, 2:].prod(1) + tbox[:, 2:].prod(1) - inter + eps
    iou = inter / union
    hull = torch.max(p[:, 2:], t[:, 2:]) - torch.min(p[:, :2], t[:, :2])
    distance = (pbox[:, :2] - tbox[:, :2]).pow(2).sum(1) / (hull.pow(2).sum(1) + eps)
    angle = torch.atan(tbox[:, 2] / (tbox[:, 3] + eps)) - torch.atan(pbox[:, 2] / (pbox[:, 3] + eps))
    v = (4 / math.pi ** 2) * angle.pow(2)
    with torch.no_grad():
        alpha = v / (v - iou + 1 + eps)
    return iou - distance - alpha * v


def increment_path(path):
    """runs/exp -> runs/exp-1, runs/exp-2, ...; the folder is made."""
    path, n = Path(path), 1
    while True:
        try:
            folder = path.with_name(f'{path.name}-{n}')
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            n += 1


def scalar_log(file):
    """A logger that writes one scalar a line, as TensorBoard's add_scalar does."""
    logger = logging.getLogger('scalars')
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.FileHandler(file, mode='w')
    handler.setFormatter(logging.Formatter('%(asctime)s %(message)s'))
    logger.addHandler(handler)
    return logger


def log_scalars(logger, ni, loss_items, optimizer, model):
    """Losses, learning rates, weights and gradients of one iteration."""
    for tag, x in zip(('box', 'obj', 'cls', 'total'), loss_items):
        logger.info('train/%s_loss %d %.6g', tag, ni, x.item())
    for j, group in enumerate(optimizer.param_groups):
        logger.info('x/lr%d %d %.6g', j, ni, group['lr'])
    for name, p in model.named_parameters():
        for kind, x in (('weights', p.detach()), ('grads', p.grad)):
            logger.info('%s/%s.norm %d %.6g', kind, name, ni, x.norm().item())
            logger.info('%s/%s.mean %d %.6g', kind, name, ni, x.mean().item())
            logger.info('%s/%s.std %d %.6g', kind, name, ni, x.std(unbiased=False).item())
            logger.info('%s/%s.max %d %.6g', kind, name, ni, x.abs().max().item())
