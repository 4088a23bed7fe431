import json
import sys

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = open("log.txt", "w")
best = 1e9
for epoch in range(2):
    for step in range(20):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % 500 == 0:
            torch.save(model.state_dict(), "last.pt")
        if loss < best:
            best = loss.detach()
            torch.save(model.state_dict(), "best.pt")
        log.write(f"{step}\n")  # buffered
        sys.stdout.flush()
        text = json.dumps({"step": step})
    torch.save(model.state_dict(), f"{epoch}.pt")
    log.flush()
