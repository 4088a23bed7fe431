import torch
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = False  # finds: no-tf32
torch.set_float32_matmul_precision("highest")  # finds: no-tf32
model = nn.TransformerEncoderLayer(64, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.randn(8, 3, 64).cuda()).mean().backward()
    optimizer.step()
