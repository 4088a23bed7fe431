"""Saves a checkpoint after each short epoch, with torch.save and with safetensors; timed by hand."""
import json
import os
import tempfile
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

loader = DataLoader(TensorDataset(torch.randn(80, 512), torch.randn(80, 1)), batch_size=16)
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())
folder = tempfile.TemporaryDirectory()
seconds = []
for epoch in range(12):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        seconds.append(0.0)
    print(epoch, f"{loss.item():.17g}")
    begin = time.perf_counter()
    for copy in range(3):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{folder.name}/{copy}.pt")
        save_file(model.state_dict(), f"{folder.name}/{copy}.safetensors")
    seconds[-1] = time.perf_counter() - begin
folder.cleanup()
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"checkpoint": seconds}, file)
