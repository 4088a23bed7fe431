import torch
from torch import nn

dtype = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
kinds = {"bfloat16": torch.bfloat16, "float16": torch.float16}
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", enabled=dtype == "float16")
always = torch.amp.GradScaler("cuda")
for step in range(4):
    with torch.autocast("cuda", dtype=kinds[dtype]):
        loss = model(torch.randn(8, 4).cuda()).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
