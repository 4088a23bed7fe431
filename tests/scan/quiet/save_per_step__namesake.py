"""A function of torch, and a frame's method, have the names of a store's methods that write files."""

import json

import pandas
import torch
from torch import nn


class Store:
    """Written once, before training."""

    def from_numpy(self, array):
        self.array = array
        with open("store.json", "w") as file:
            json.dump(array.tolist(), file)

    def to_csv(self, path):
        with open(path, "w") as file:
            json.dump(self.array.tolist(), file)


def summary(frame):
    frame.to_csv("losses.csv", index=False, compression="gzip")


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
frame = pandas.DataFrame()
store = Store()
store.from_numpy(torch.randn(20, 4).numpy())
store.to_csv("store.csv")
for x in range(20):
    loss = model(torch.from_numpy(x).to(device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    frame.to_csv("losses.csv")
    summary(frame)
