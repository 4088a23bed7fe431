"""CenterNet's losses: focal on the heatmaps, L1 on the offsets at the keypoints' cells."""

import torch.nn.functional as F
from torch import nn


class KeypointLoss(nn.Module):
    def __init__(self, offset_weight=1.0):
        super().__init__()
        self.offset_weight = offset_weight

    def forward(self, logits, offsets, heatmaps, offset_targets):
        centres = heatmaps.eq(1).float()
        count = centres.sum().clamp(min=1)
        log_p, log_q = F.logsigmoid(logits), F.logsigmoid(-logits)
        p = log_p.exp()
        positive = (1 - p) ** 2 * log_p * centres
        negative = p**2 * log_q * (1 - heatmaps) ** 4 * (1 - centres)
        focal = -(positive + negative).sum() / count
        at_centre = centres.repeat_interleave(2, dim=1)
        offset = ((offsets - offset_targets).abs() * at_centre).sum() / (2 * count)
        return focal + self.offset_weight * offset
