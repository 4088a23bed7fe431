"""VGG-19 feature extractor for the perceptual loss. Frozen; the weights come from a fixed seed."""

import math

import torch
from torch import nn

# Convolutions per block of VGG-19 up to relu4_4; the width doubles from block to block.
BLOCKS = (2, 2, 4, 4)
WEIGHT_SEED = 19


class VGGFeatures(nn.Module):
    """Returns the outputs of the named layers, e.g. relu3_4 for block 3, convolution 4."""

    def __init__(self, layers, base_width=64):
        super().__init__()
        self.wanted = set(layers)
        self.blocks = nn.ModuleList()
        channels = 3
        for number, count in enumerate(BLOCKS):
            width = base_width * 2**number
            convs = [nn.Conv2d(channels if i == 0 else width, width, 3, padding=1) for i in range(count)]
            self.blocks.append(nn.ModuleList(convs))
            channels = width
        self.pool = nn.MaxPool2d(2)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        self.load_fixed_weights()
        self.requires_grad_(False).eval()

    @torch.no_grad()
    def load_fixed_weights(self):
        generator = torch.Generator().manual_seed(WEIGHT_SEED)
        for block in self.blocks:
            for conv in block:
                std = math.sqrt(2.0 / (conv.in_channels * 9))
                conv.weight.copy_(torch.randn(conv.weight.shape, generator=generator) * std)
                conv.bias.zero_()

    def forward(self, x):
        features = {}
        x = (x - self.mean) / self.std
        for block_no, block in enumerate(self.blocks, 1):
            if block_no > 1:
                x = self.pool(x)
            for conv_no, conv in enumerate(block, 1):
                x = conv(x).relu()
                name = f"relu{block_no}_{conv_no}"
                if name in self.wanted:
                    features[name] = x
        return features
