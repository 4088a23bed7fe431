import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x, name):
        if x.dim() != 2:
            raise ValueError(f"of {name}: {x}")
        label = f"{name}: {x.shape} {x.device}"
        assert x.size(1) == 4, f"what is this? {x}"
        return {"out": self.inner(x), "label": label}


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for step in range(20):
        outputs = model(torch.randn(8, 4).to(device), "train")
        for key in outputs:
            label = f"train/{key}"
        loss = outputs["out"].square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        number = loss.item()
        print(f"{step} {number:.3f} {loss.item():.3f} {tuple(loss.shape)}")
        logger.debug("loss %s", loss)
        if step % 10 == 0:
            print(loss)
    print(f"epoch {epoch}: {loss:.3f}")
