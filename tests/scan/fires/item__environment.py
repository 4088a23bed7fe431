"""An environment takes the action; what else is read could wait."""

import gymnasium
import torch
from torch import nn

env = gymnasium.make("CartPole-v1")
model = nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen, _ = env.reset()
for step in range(20):
    out = model(torch.as_tensor(seen, device="cuda"))
    action = torch.argmax(out).item()
    seen, reward, _, _, _ = env.step(action)
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())  # finds: item
