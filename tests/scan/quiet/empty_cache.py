import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate():
    torch.cuda.empty_cache()
    with torch.no_grad():
        return model(torch.randn(8, 4)).sum()


for epoch in range(2):
    torch.cuda.empty_cache()
    for step in range(20):
        try:
            model(torch.randn(8, 4)).sum().backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            continue
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % 500 == 0:
            torch.cuda.empty_cache()
    validate()
torch.cuda.empty_cache()
