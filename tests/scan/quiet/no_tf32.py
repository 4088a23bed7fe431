import torch
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = True
model = nn.TransformerEncoderLayer(64, 4)
model = model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    with torch.autocast("cuda", enabled=False):
        loss = model(torch.randn(8, 3, 64).cuda()).mean()
    loss.backward()
    optimizer.step()
