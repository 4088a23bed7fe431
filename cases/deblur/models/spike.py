"""Deblurring network: a spike encoder in front of VRT."""

from torch import nn

from .vrt import VRT


class SpikeEncoder(nn.Module):
    """Binary spike planes of a frame to a feature map."""

    def __init__(self, bins, dim):
        super().__init__()
        self.dim = dim
        self.body = nn.Sequential(
            nn.Conv2d(bins, dim, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(dim, dim, 3, padding=1),
            nn.GELU(),
        )

    def forward(self, spikes):
        """(B, T, bins, H, W) -> (B, T, dim, H, W)"""
        b, t, _, h, w = spikes.shape
        return self.body(spikes.flatten(0, 1)).view(b, t, self.dim, h, w)


class SpikeVRT(nn.Module):
    def __init__(self, cfg, dataset, timing):
        super().__init__()
        self.timing = timing
        dim = cfg["SPIKE"]["dim"]
        self.spike = SpikeEncoder(dataset["SPIKE_BINS"], dim)
        self.vrt = VRT(cfg["VRT"], 3 + dim, dataset["N_FRAMES"], dataset["CROP_SIZE"], timing)

    def forward(self, blur, spikes):
        with self.timing.timer("spike"):
            features = self.spike(spikes)
        with self.timing.timer("vrt"):
            return self.vrt(blur, features)
