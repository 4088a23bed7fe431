"""Detection loss: cells near the centre of a box learn it, on the level that fits its size."""

import torch
import torch.nn.functional as F
from torch import nn

from .model import decode, make_anchors

CENTER_RADIUS = 1.5
BOX_GAIN = 2.0


def box_iou(a, b):
    """IoU of boxes (..., 4), broadcast."""
    overlap = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    area_a = (a[..., 2:] - a[..., :2]).prod(-1)
    area_b = (b[..., 2:] - b[..., :2]).prod(-1)
    return overlap / (area_a + area_b - overlap + 1e-7)


class DetectionLoss(nn.Module):
    def __init__(self, n_classes, imgsz, device):
        super().__init__()
        self.n_classes = n_classes
        self.points, self.strides = make_anchors(imgsz, device)

    @torch.no_grad()
    def assign(self, boxes, valid):
        """For each cell: whether it learns a box, and which (the smallest that wants it)."""
        centers = (boxes[..., :2] + boxes[..., 2:]) / 2
        sizes = (boxes[..., 2:] - boxes[..., :2]).amax(-1)
        offset = (self.points[None, :, None] - centers[:, None]).abs().amax(-1)
        near = offset < CENTER_RADIUS * self.strides[None, :, None]
        relative = sizes[:, None] / self.strides[None, :, None]
        lowest, highest = self.strides == self.strides.min(), self.strides == self.strides.max()
        fits = ((relative >= 4) | lowest[None, :, None]) & ((relative < 8) | highest[None, :, None])
        wanted = near & fits & valid[:, None]
        cost = torch.where(wanted, sizes[:, None], torch.inf)
        smallest, index = cost.min(dim=-1)
        return smallest.isfinite(), index

    def forward(self, outputs, targets):
        """targets (B, M, 5): class (-1 where there is none) and box in pixels"""
        distances, logits = outputs
        positive, index = self.assign(targets[..., 1:], targets[..., 0] >= 0)
        matched = targets.gather(1, index[..., None].expand(-1, -1, 5))
        count = positive.sum().clamp(min=1)

        iou = box_iou(decode(distances, self.points, self.strides), matched[..., 1:])
        box_loss = ((1 - iou) * positive).sum() / count
        wanted = F.one_hot(matched[..., 0].long().clamp(min=0), self.n_classes) * positive[..., None]
        cls_loss = F.binary_cross_entropy_with_logits(logits.float(), wanted.float(), reduction="sum") / count
        return BOX_GAIN * box_loss + cls_loss
