import json
import pickle

import numpy as np
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = open("log.txt", "w")
for step in range(20):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.save(model.state_dict(), "last.pt")  # finds: save-per-step
    text = "written"
    with open("state.json", "w") as file:
        json.dump({"step": step}, file)  # finds: save-per-step
    log.write(f"{step}\n")
    log.flush()  # finds: save-per-step
