import torch
from torch import nn

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for step in range(4):
    with torch.autocast("cuda"):  # finds: autocast-extent
        loss = model(torch.randn(8, 4).cuda()).mean()
        scaler.scale(loss).backward()
    scaler.step(optimizer)
with torch.autocast("cuda"):  # finds: autocast-extent
    for step in range(4):
        model(torch.randn(8, 4).cuda()).mean().backward()
        optimizer.step()
