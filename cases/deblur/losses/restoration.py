"""Charbonnier loss on the pixels plus a perceptual loss on VGG features."""

import torch
import torch.nn.functional as F
from torch import nn

from models import VGGFeatures


class PerceptualLoss(nn.Module):
    def __init__(self, layers, base_width, share_target):
        super().__init__()
        self.layers = layers
        self.share_target = share_target
        self.vgg = VGGFeatures(layers, base_width)

    def forward(self, pred, target):
        pred_features = self.vgg(pred)
        shared = self.vgg(target) if self.share_target else None
        loss = pred.new_zeros(())
        for name, weight in self.layers.items():
            target_features = shared or self.vgg(target)
            loss = loss + weight * F.l1_loss(pred_features[name], target_features[name])
        return loss


class RestorationLoss(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.eps = cfg["CHARBONNIER_EPS"]
        perceptual = cfg["PERCEPTUAL"]
        self.weight = perceptual["weight"]
        self.perceptual = PerceptualLoss(perceptual["layers"], perceptual["base_width"], perceptual["share_target"])

    def forward(self, pred, target):
        """Both (B, T, 3, H, W); computed in fp32."""
        pred, target = pred.float().flatten(0, 1), target.flatten(0, 1)
        charbonnier = torch.sqrt((pred - target) ** 2 + self.eps**2).mean()
        return charbonnier + self.weight * self.perceptual(pred, target)
