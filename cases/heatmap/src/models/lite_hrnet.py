"""A light HRNet: branches at strides 4, 8, 16, ... that exchange features after each stage."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn


class ConvBN(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=1, stride=1, groups=1, act=True):
        layers = [
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        if act:
            layers.append(nn.ReLU(inplace=True))
        super().__init__(*layers)


class Unit(nn.Module):
    """Pointwise, depthwise, pointwise, and a shortcut."""

    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            ConvBN(channels, channels),
            ConvBN(channels, channels, 3, groups=channels),
            ConvBN(channels, channels, act=False),
        )

    def forward(self, x):
        return F.relu(x + self.body(x))


class Down(nn.Sequential):
    """Halve the resolution, depthwise, and change the channels."""

    def __init__(self, inputs, outputs):
        super().__init__(ConvBN(inputs, inputs, 3, 2, groups=inputs, act=False), ConvBN(inputs, outputs))


class Stage(nn.Module):
    """Units on each branch, then every branch gets the sum of all others, resized."""

    def __init__(self, channels, units, last=False):
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(Unit(c) for c in [width] * units)) for width in channels)
        targets = channels[:1] if last else channels
        self.fuse = nn.ModuleList(
            nn.ModuleList(self._path(channels, source, target) for source in range(len(channels)))
            for target in range(len(targets))
        )

    @staticmethod
    def _path(channels, source, target):
        if source == target:
            return nn.Identity()
        if source > target:
            return ConvBN(channels[source], channels[target], act=False)
        steps = [Down(channels[i], channels[i]) for i in [source] * (target - source)]
        return nn.Sequential(*steps, ConvBN(channels[source], channels[target], act=False))

    def forward(self, features):
        features = [branch(x) for branch, x in zip(self.branches, features, strict=True)]
        fused = []
        for target, paths in enumerate(self.fuse):
            total = features[target]
            for source, path in enumerate(paths):
                if source == target:
                    continue
                part = path(features[source])
                if source > target:
                    part = F.interpolate(part, scale_factor=2 ** (source - target), mode="nearest")
                total = total + part
            fused.append(F.relu(total))
        return fused


class LiteHRNet(nn.Module):
    """Heatmap logits and offsets at a quarter of the input's resolution."""

    def __init__(self, keypoints, stem, channels, units, head):
        super().__init__()
        self.stem = nn.Sequential(ConvBN(1, stem, 3, 2), Down(stem, channels[0]))
        self.widen = nn.ModuleList(Down(a, b) for a, b in pairwise(channels))
        self.stages = nn.ModuleList(
            Stage(channels, count, last=number == len(units) - 1) for number, count in enumerate(units)
        )
        self.heatmap_head = self._head(channels[0], head, keypoints)
        self.offset_head = self._head(channels[0], head, 2 * keypoints)
        nn.init.constant_(self.heatmap_head[-1].bias, -4.6)  # focal loss: begin with p = 0.01 everywhere

    @staticmethod
    def _head(inputs, hidden, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs, hidden, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(hidden, outputs, 1)
        )

    def forward(self, images):
        x = self.stem(images)
        features = [x]
        for down in self.widen:
            features.append(down(features[-1]))
        for stage in self.stages:
            features = stage(features)
        with torch.autocast(images.device.type, enabled=False):  # sub-pixel offsets need full precision
            x = features[0].float()
            return self.heatmap_head(x), self.offset_head(x)
