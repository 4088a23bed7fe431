import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def accuracy(output, target):
    guess = output.detach().cpu().argmax(1)  # finds: cpu-copy
    return (guess == target).float().mean()


for step in range(20):
    target = torch.zeros(8, dtype=torch.long, device=device)
    output = model(torch.randn(8, 4, device=device))
    loss = nn.functional.cross_entropy(output, target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    share = accuracy(output, target.clone())
    scores = output.detach().softmax(1).cpu().numpy()  # finds: cpu-copy
