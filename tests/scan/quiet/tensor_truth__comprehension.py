"""The name of a comprehension is another than that of the tensor."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Routes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.routes = nn.Linear(4, 4), "1,2"

    def forward(self, x):
        x = self.layer(x)
        places = [int(x) for x in self.routes.split(",")]
        return x[:, places]


model = Routes().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.randn(8, 4, device=device)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
