"""Keypoints to dense targets: what a heatmap and an offset map hold at each cell."""

import math


def sigma_of(radius):
    """As CornerNet and CenterNet choose it: the bump fades out at the radius."""
    return (2 * radius + 1) / 6


def bump(distance2, sigma):
    """Height of the bump at a squared distance from its centre. Four digits are plenty."""
    return round(math.exp(-distance2 / (2 * sigma**2)), 4)
