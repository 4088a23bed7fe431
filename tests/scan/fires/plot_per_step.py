import cv2
import matplotlib.pyplot as plt
import torch
from torch import nn
from torchvision.utils import save_image

model = nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []


def draw(losses):
    plt.figure()  # finds: plot-per-step
    plt.plot(losses)
    plt.savefig("losses.png")
    plt.close()


for step in range(20):
    x = torch.rand(8, 1, 16, 16)
    out = model(x)
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())
    draw(losses)
    save_image(out, "out.png")  # finds: plot-per-step
    print("drawn")
    cv2.imwrite("in.png", x[0, 0].numpy())  # finds: plot-per-step
