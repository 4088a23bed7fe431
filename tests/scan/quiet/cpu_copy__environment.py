"""An environment on the CPU takes the actions: there is no step without them."""

import gymnasium
import torch
from torch import nn

envs = gymnasium.make_vec("CartPole-v1", 4)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen, _ = envs.reset()
for step in range(20):
    out = model(torch.as_tensor(seen, device=device))
    actions = torch.argmax(out, dim=1).cpu().numpy()
    seen, reward, _, _, _ = envs.step(actions)
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
