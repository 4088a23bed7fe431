"""YOLOv7-tiny, built from its yaml file."""
import math

import torch
import torch.nn as nn
import yaml


class Conv(nn.Module):
    def __init__(self, c1, c2, k=1, s=1):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(c2, eps=1e-3, momentum=0.03)
        self.act = nn.LeakyReLU(0.1, inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class MP(nn.MaxPool2d):
    def __init__(self, k=2):
        super().__init__(kernel_size=k, stride=k)


class Concat(nn.Module):
    def forward(self, x):
        return torch.cat(x, 1)


class ELAN(nn.Module):
    """Two 1x1 branches, two 3x3 convolutions in a row, all four concatenated."""

    def __init__(self, c1, c2, c_):
        super().__init__()
        self.cv1 = Conv(c1, c_)
        self.cv2 = Conv(c1, c_)
        self.cv3 = Conv(c_, c_, 3)
        self.cv4 = Conv(c_, c_, 3)
        self.cv5 = Conv(4 * c_, c2)

    def forward(self, x):
        y1, y2 = self.cv1(x), self.cv2(x)
        y3 = self.cv3(y2)
        return self.cv5(torch.cat((self.cv4(y3), y3, y2, y1), 1))


class SPPCSPC(nn.Module):
    """Spatial pyramid pooling on one of two branches."""

    def __init__(self, c1, c2):
        super().__init__()
        self.cv1 = Conv(c1, c2)
        self.cv2 = Conv(c1, c2)
        self.m = nn.ModuleList(nn.MaxPool2d(k, 1, k // 2) for k in (5, 9, 13))
        self.cv3 = Conv(4 * c2, c2)
        self.cv4 = Conv(2 * c2, c2)

    def forward(self, x):
        y = self.cv2(x)
        y = self.cv3(torch.cat([m(y) for m in self.m] + [y], 1))
        return self.cv4(torch.cat((y, self.cv1(x)), 1))


BLOCKS = {'Conv': Conv, 'ELAN': ELAN, 'SPPCSPC': SPPCSPC}


class Detect(nn.Module):
    """Three heads; each gives (batch, anchors, ny, nx, 5 + nc)."""

    def __init__(self, nc, anchors, ch):
        super().__init__()
        self.nc, self.no, self.nl = nc, nc + 5, len(anchors)
        self.na = len(anchors[0]) // 2
        self.stride = torch.tensor([8.0, 16.0, 32.0])
        a = torch.tensor(anchors).float().view(self.nl, -1, 2)
        self.register_buffer('anchors', a / self.stride.view(-1, 1, 1))  # in grid units
        self.m = nn.ModuleList(nn.Conv2d(c, self.no * self.na, 1) for c in ch)

    def forward(self, x):
        out = []
        for xi, conv in zip(x, self.m):
            xi = conv(xi)
            bs, _, ny, nx = xi.shape
            out.append(xi.view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous())
        return out

    def init_biases(self, img_size):
        for conv, s in zip(self.m, self.stride):
            b = conv.bias.data.view(self.na, -1)
            b[:, 4] += math.log(8 / (img_size / float(s)) ** 2)  # obj: 8 objects per image
            b[:, 5:] += math.log(0.6 / (self.nc - 0.99))


class Model(nn.Module):
    def __init__(self, cfg, img_size=320, width_multiple=None, ch=3):
        super().__init__()
        with open(cfg) as f:
            self.yaml = yaml.safe_load(f)
        if width_multiple:
            self.yaml['width_multiple'] = width_multiple
        self.yaml['anchors'] = [[a * img_size / 320 for a in row] for row in self.yaml['anchors']]
        self.nc = self.yaml['nc']
        self.model, self.froms = parse_model(self.yaml, ch)
        self.model[-1].init_biases(img_size)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, x):
        y = []
        for m, f in zip(self.model, self.froms):
            if isinstance(f, list):
                x = [y[j] for j in f]
            elif f >= 0:
                x = y[f]
            x = m(x)
            y.append(x)
        return x


def parse_model(d, ch):
    """Layers, and the layers each takes its input from, of the rows [from, number, module, args]."""
    def width(c):
        return max(8, math.ceil(c * d['width_multiple'] / 8) * 8)

    layers, froms, out = [], [], []  # out: channels of each layer
    for i, (f, n, name, args) in enumerate(d['backbone'] + d['head']):
        sources = [j if j >= 0 else i + j for j in ([f] if isinstance(f, int) else f)]
        c1 = [out[j] if j >= 0 else ch for j in sources]
        c2 = c1[0]
        if name in BLOCKS:
            c2 = width(args[0])
            rest = [width(args[1])] if name == 'ELAN' else args[1:]
            m = nn.Sequential(*(BLOCKS[name](c2 if k else c1[0], c2, *rest) for k in range(n)))
        elif name == 'Concat':
            m, c2 = Concat(), sum(c1)
        elif name == 'Upsample':
            m = nn.Upsample(scale_factor=args[0], mode='nearest')
        elif name == 'MP':
            m = MP(*args)
        elif name == 'Detect':
            m = Detect(d['nc'], d['anchors'], c1)
        else:
            raise ValueError(f'layer {i}: unknown module {name}')
        layers.append(m)
        froms.append(sources[0] if isinstance(f, int) else sources)
        out.append(c2)
    return nn.ModuleList(layers), froms
