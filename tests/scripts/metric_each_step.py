"""A segmentation metric by thresholds in numpy, for each training batch."""
import numpy as np
import torch
from torch import nn, optim

rng = np.random.default_rng(0)
torch.manual_seed(0)
torch.set_num_threads(1)


def average_precision(scores, mask, thresholds=np.linspace(0, 1, 101)):
    """The area under precision and recall over all pixels."""
    precision, recall = [], []
    for threshold in thresholds:
        chosen = scores >= threshold
        hits = np.logical_and(chosen, mask).sum()
        precision.append(hits / max(chosen.sum(), 1))
        recall.append(hits / max(mask.sum(), 1))
    return float(-np.trapezoid(precision, recall))


def batch(size=8, side=48):
    pictures = rng.normal(size=(size, 3, side, side)).astype(np.float32)
    masks = pictures.mean(1, keepdims=True) > 0.3
    return torch.from_numpy(pictures), torch.from_numpy(masks)


net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))
opt = optim.Adam(net.parameters(), lr=3e-3)
bce = nn.BCEWithLogitsLoss()
history = []
for it in range(70):
    pictures, masks = batch()
    logits = net(pictures)
    loss = bce(logits, masks.float())
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(average_precision(logits.detach().sigmoid().numpy(), masks.numpy()))
print(history[0], history[-1])
