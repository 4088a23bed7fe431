import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Loss(nn.Module):
    def forward(self, output, target):
        total = 0
        for i in range(output.shape[0]):  # finds: python-loop-in-step
            for k in range(output.shape[1]):
                total = total + (output[i, k] - target[i, k]).square()
        return total / output.numel()


class PerClass(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes

    def forward(self, output, target):
        loss = 0
        for c in range(self.num_classes):  # finds: python-loop-in-step
            loss += (output[:, c] - target[:, c]).abs().mean()
        return loss


def drawn(points, size):
    num_objects, _ = points.shape
    maps = torch.zeros(num_objects, size, device=device)
    for i in range(num_objects):  # finds: python-loop-in-step
        maps[i, int(points[i, 0]) % size] = 1
    return maps


model = nn.Linear(4, 3).to(device)
criterion, other = Loss(), PerClass(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    target = torch.rand(8, 3).to(device)
    output = model(torch.rand(8, 4).to(device))
    maps = drawn(torch.rand(8, 2).to(device), 5)
    scores = output.detach().softmax(1)
    goals = target.argmax(1)
    found = []
    for b in range(scores.shape[0]):  # finds: python-loop-in-step
        found.append(torch.stack([scores[b].max(), goals[b]]))
    loss = criterion(output, target) + other(output, target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
