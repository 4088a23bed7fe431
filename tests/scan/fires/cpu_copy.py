import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def accuracy(output, target):
    guess = output.detach().cpu().argmax(1)  # finds: cpu-copy
    return (guess == target).float().mean()


for step in range(20):
    target = torch.zeros(8, dtype=torch.long)
    output = model(torch.randn(8, 4))
    loss = nn.functional.cross_entropy(output, target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    share = accuracy(output, target.clone())
    scores = output.softmax(1).cpu().numpy()  # finds: cpu-copy
