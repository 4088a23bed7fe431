"""Lift, splat, pool, segment."""

import torch
import torch.nn.functional as F
from torch import nn

from bevseg.swin import SwinTransformer

MEAN, STD = (103.53, 116.28, 123.675), (57.375, 57.12, 58.395)  # ImageNet's, in OpenCV's order


class LiftSplat(nn.Module):
    """Spread each pixel's features over its likely depths, and sum them up in the cells of the grid."""

    def __init__(self, in_channels, out_channels, geometry):
        super().__init__()
        self.depths, self.channels = len(geometry.depths), out_channels
        self.nx, self.ny, _ = geometry.shape
        self.depthnet = nn.Conv2d(in_channels, self.depths + out_channels, 1)

    def forward(self, features, cells):
        depth, context = self.depthnet(features).split([self.depths, self.channels], dim=1)
        with torch.autocast(features.device.type, enabled=False):  # sums over many points
            depth, context = depth.float().softmax(1), context.float()
            volume = depth.unsqueeze(-1) * context.permute(0, 2, 3, 1).unsqueeze(1)
            return self.voxel_pooling(volume.view(-1, self.channels), cells)

    def voxel_pooling(self, points, cells):
        batch, size = len(cells), self.nx * self.ny + 1  # the last cell is for what lies outside
        first = torch.arange(batch, device=cells.device).unsqueeze(1) * size
        grid = points.new_zeros(batch * size, self.channels).index_add(0, (cells + first).flatten(), points)
        grid = grid.view(batch, size, self.channels)[:, :-1]
        return grid.transpose(1, 2).reshape(batch, self.channels, self.ny, self.nx)


class BEVEncoder(nn.Module):
    """Convolutions on the grid, and a logit for each class and cell."""

    def __init__(self, in_channels, channels, num_convs, num_classes):
        super().__init__()
        self.fp16_enabled = False
        layers = []
        for _ in range(num_convs):
            layers += [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
            in_channels = channels
        self.convs = nn.Sequential(*layers, nn.Conv2d(channels, num_classes, 1))

    def forward(self, bev):
        if self.fp16_enabled:
            with torch.autocast(bev.device.type, torch.float16):
                return self.convs(bev)
        return self.convs(bev)


class BEVSegmentor(nn.Module):
    def __init__(self, cfg, geometry):
        super().__init__()
        self.fp16_enabled = False
        self.pos_weight = cfg.model.pos_weight
        self.backbone = SwinTransformer(cfg.input_size, **cfg.model.backbone)
        self.view_transformer = LiftSplat(self.backbone.out_channels, geometry=geometry, **cfg.model.view_transformer)
        self.bev_encoder = BEVEncoder(
            self.view_transformer.channels, num_classes=len(cfg.class_names), **cfg.model.bev_encoder
        )
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(3, 1, 1), persistent=False)

    def forward(self, img, cells):
        with torch.autocast(img.device.type, torch.float16, enabled=self.fp16_enabled):
            features = self.backbone((img.flatten(0, 1).float() - self.mean) / self.std)
            bev = self.view_transformer(features, cells)
            return self.bev_encoder(bev)

    def loss(self, logits, target):
        """Cross entropy with the rare cells weighted up, and dice."""
        logits = logits.float()
        weight = 1 + (self.pos_weight - 1) * target
        bce = F.binary_cross_entropy_with_logits(logits, target, weight=weight)
        p = logits.sigmoid()
        overlap, total = (p * target).sum((0, 2, 3)), (p + target).sum((0, 2, 3))
        return bce + (1 - 2 * overlap / (total + 1)).mean()
