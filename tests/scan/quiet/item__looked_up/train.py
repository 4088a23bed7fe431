import losses
import torch
import yaml
from torch import nn

if __name__ == "__main__":
    define = yaml.safe_load(open("configs/base.yaml"))["define"]
    criterion = getattr(losses, define[0]["loss"])()
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(200):
        loss = criterion(model(torch.randn(8, 4, device="cuda")))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
