import torch

from newer import Model

model = Model()
for step in range(20):
    model.update(torch.randn(8, 4, device="cuda"))
