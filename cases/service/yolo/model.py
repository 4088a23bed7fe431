"""A small anchor-free detector in the manner of YOLOv8: C2f backbone, PAN neck, decoupled head on three strides."""

import torch
import torch.nn.functional as F
from torch import nn

STRIDES = (8, 16, 32)


class Conv(nn.Module):
    def __init__(self, c_in, c_out, k=1, s=1):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, k, s, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(c_out, eps=1e-3, momentum=0.03)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, c, shortcut):
        super().__init__()
        self.cv1, self.cv2, self.shortcut = Conv(c, c, 3), Conv(c, c, 3), shortcut

    def forward(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.shortcut else y


class C2f(nn.Module):
    def __init__(self, c_in, c_out, n=1, shortcut=False):
        super().__init__()
        c = c_out // 2
        self.cv1 = Conv(c_in, c_out)
        self.cv2 = Conv((2 + n) * c, c_out)
        self.m = nn.ModuleList(Bottleneck(c, shortcut) for _ in range(n))

    def forward(self, x):
        parts = list(self.cv1(x).chunk(2, dim=1))
        for block in self.m:
            parts.append(block(parts[-1]))
        return self.cv2(torch.cat(parts, dim=1))


class SPPF(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.cv1, self.cv2 = Conv(c, c // 2), Conv(c * 2, c)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.cv2(torch.cat(parts, dim=1))


class Head(nn.Module):
    """Distances to the four sides of the box, in strides, and a score for each class."""

    def __init__(self, channels, n_classes):
        super().__init__()
        hidden = max(16, channels[0] // 2)
        self.box = nn.ModuleList(nn.Sequential(Conv(c, hidden, 3), nn.Conv2d(hidden, 4, 1)) for c in channels)
        self.cls = nn.ModuleList(nn.Sequential(Conv(c, hidden, 3), nn.Conv2d(hidden, n_classes, 1)) for c in channels)
        for branch in self.cls:
            nn.init.constant_(branch[-1].bias, -4.0)

    def forward(self, features):
        boxes = [F.softplus(box(x)).flatten(2) for box, x in zip(self.box, features)]
        scores = [cls(x).flatten(2) for cls, x in zip(self.cls, features)]
        return torch.cat(boxes, dim=2).transpose(1, 2), torch.cat(scores, dim=2).transpose(1, 2)


class YOLO(nn.Module):
    def __init__(self, n_classes, widths, depths):
        super().__init__()
        w0, w1, w2, w3, w4 = widths
        self.stem = nn.Sequential(Conv(3, w0, 3, 2), Conv(w0, w1, 3, 2), C2f(w1, w1, depths[0], True))
        self.p3 = nn.Sequential(Conv(w1, w2, 3, 2), C2f(w2, w2, depths[1], True))
        self.p4 = nn.Sequential(Conv(w2, w3, 3, 2), C2f(w3, w3, depths[2], True))
        self.p5 = nn.Sequential(Conv(w3, w4, 3, 2), C2f(w4, w4, depths[3], True), SPPF(w4))
        self.up = nn.Upsample(scale_factor=2)
        self.up4, self.up3 = C2f(w4 + w3, w3), C2f(w3 + w2, w2)
        self.down4, self.out4 = Conv(w2, w2, 3, 2), C2f(w2 + w3, w3)
        self.down5, self.out5 = Conv(w3, w3, 3, 2), C2f(w3 + w4, w4)
        self.head = Head((w2, w3, w4), n_classes)

    def forward(self, images):
        """uint8 images (B, 3, S, S) -> boxes (B, A, 4) in strides, class logits (B, A, classes)"""
        x = self.stem(images.float() / 255)
        p3 = self.p3(x)
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        n4 = self.up4(torch.cat([self.up(p5), p4], dim=1))
        n3 = self.up3(torch.cat([self.up(n4), p3], dim=1))
        n4 = self.out4(torch.cat([self.down4(n3), n4], dim=1))
        n5 = self.out5(torch.cat([self.down5(n4), p5], dim=1))
        return self.head((n3, n4, n5))


def make_anchors(imgsz, device):
    """Centres (A, 2) in pixels and strides (A,) of all cells of the three feature maps."""
    points, strides = [], []
    for stride in STRIDES:
        cells = torch.arange(imgsz // stride, device=device) + 0.5
        y, x = torch.meshgrid(cells, cells, indexing="ij")
        points.append(torch.stack([x, y], dim=-1).view(-1, 2) * stride)
        strides.append(torch.full((len(cells) ** 2,), float(stride), device=device))
    return torch.cat(points), torch.cat(strides)


def decode(distances, points, strides):
    """Distances in strides to boxes (x1, y1, x2, y2) in pixels."""
    sides = distances.float() * strides[:, None]
    return torch.cat([points - sides[..., :2], points + sides[..., 2:]], dim=-1)
