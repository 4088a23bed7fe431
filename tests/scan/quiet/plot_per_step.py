import cv2
import matplotlib.pyplot as plt
import torch
from torch import nn
from torchvision.utils import make_grid, save_image

model = nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses, show = [], False
for epoch in range(2):
    for step in range(20):
        x = torch.rand(8, 1, 16, 16)
        out = model(x)
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if step % 100 == 0:
            save_image(make_grid(out), "out.png")
        if show:
            cv2.imshow("in", x[0, 0].numpy())
        picture = cv2.resize(x[0, 0].numpy(), (8, 8))
    plt.plot(losses)
    plt.savefig("losses.png")
