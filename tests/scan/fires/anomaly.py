import argparse
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", "Anomaly Detection")
parser = argparse.ArgumentParser()
parser.add_argument("--find-nan", type=bool, default=True)
args = parser.parse_args([])
torch.autograd.set_detect_anomaly(True)  # finds: anomaly
torch.autograd.set_detect_anomaly(args.find_nan)  # finds: anomaly
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(8, 4)).square().mean()
    with torch.autograd.detect_anomaly(check_nan=False):  # finds: anomaly
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item())
