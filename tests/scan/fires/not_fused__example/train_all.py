import torch
from torch import nn
from wrapped import Wrapped, train

model = nn.Linear(4, 1).cuda()
if __name__ == "__main__":
    train(Wrapped(torch.optim.Rprop(model.parameters())), model)
