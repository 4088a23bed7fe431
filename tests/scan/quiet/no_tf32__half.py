import torch
from torch import nn

model = nn.TransformerEncoderLayer(64, 4)
model = model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    with torch.autocast("cuda"):
        loss = model(torch.randn(8, 3, 64).cuda()).mean()
        with torch.autocast("cuda", enabled=False):
            loss = loss.square()
    loss.backward()
    optimizer.step()
