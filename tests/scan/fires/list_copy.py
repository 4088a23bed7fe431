import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

counts = {}
for step in range(20):
    x = torch.randn(8, 4).to(device)
    output = model(x)
    loss = output.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    for guess in output.argmax(1).tolist():  # finds: list-copy
        counts[guess] = counts.get(guess, 0) + 1
    losses = loss.detach().numpy()  # finds: list-copy
