"""Logs far too much: logging, print and tqdm."""
import json
import logging
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Slow(logging.Handler):
    def emit(self, record):
        text = self.format(record)
        with open(os.devnull, "w") as file:
            for character in text:
                file.write(character)
                file.flush()


logging.basicConfig(level=logging.INFO, handlers=[Slow(), logging.StreamHandler()], format="%(levelname)s %(message)s")
log = logging.getLogger("train")
loader = DataLoader(TensorDataset(torch.randn(640, 128), torch.randn(640, 1)), batch_size=8)
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())
seconds = []
for step, (x, y) in enumerate(tqdm(loader, mininterval=0)):
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    weights = model[2].weight.detach().flatten().tolist()
    begin = time.perf_counter()
    log.info("step %d loss %.17g weights %s", step, loss.item(), weights * 6)
    seconds.append(time.perf_counter() - begin)
    print(step, f"{loss.item():.17g}")
if "PLANTED_OUT" in os.environ:
    with open(os.environ["PLANTED_OUT"], "w") as file:
        json.dump({"logging": seconds}, file)
