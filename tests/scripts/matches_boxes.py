"""A detection loss that matches predicted and true boxes pair by pair."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def greedy_match(predicted, true):
    """The best prediction that is left for each true box."""
    chosen = []
    for box in true:
        ranked = sorted((-iou(candidate, box), number) for number, candidate in enumerate(predicted) if number not in chosen)
        chosen.append(ranked[0][1])
    return chosen


class MatchingLoss(nn.Module):
    def forward(self, predicted, true):
        total = predicted.new_zeros(())
        for p, t in zip(predicted, true):
            rows = greedy_match(p.tolist(), t.tolist())
            total = total + nn.functional.smooth_l1_loss(p[rows], t)
        return total / len(predicted)


class Detector(nn.Module):
    def __init__(self, slots=48):
        super().__init__()
        self.slots = slots
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.head = nn.Linear(512, slots * 4)

    def forward(self, x):
        corner, size = self.head(self.backbone(x).flatten(1)).view(-1, self.slots, 2, 2).sigmoid().unbind(2)
        return torch.cat([corner, corner + size], -1)


def make_boxes(count, each):
    corner = torch.rand(count, each, 2) * 0.7
    return torch.cat([corner, corner + 0.1 + 0.2 * torch.rand(count, each, 2)], -1)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(torch.rand(480, 3, 64, 64), make_boxes(480, 16)), batch_size=8)
    detector, matching = Detector(), MatchingLoss()
    optimizer = torch.optim.AdamW(detector.parameters(), lr=1e-3)
    for pictures, boxes in loader:
        loss = matching(detector(pictures), boxes)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(loss.item())
