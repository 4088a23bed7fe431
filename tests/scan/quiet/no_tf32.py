import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--exact", action="store_true")
args = parser.parse_args()
torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")
if args.exact:
    torch.set_float32_matmul_precision("highest")
model = nn.TransformerEncoderLayer(64, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def precise(x):
    torch.backends.cudnn.allow_tf32 = False
    x = x @ x
    torch.backends.cudnn.allow_tf32 = True
    return x


for step in range(4):
    model(torch.randn(8, 3, 64).cuda()).mean().backward()
    optimizer.step()
