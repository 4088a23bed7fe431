"""As old versions of torch were told that no gradients are needed."""

import torch
from torch import nn
from torch.autograd import Variable

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
test_loader = [torch.randn(8, 4)] * 3
model.eval()
for x in test_loader:
    print(model(Variable(x, volatile=True).to(device)).mean())
