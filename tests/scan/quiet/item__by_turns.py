"""Every sixth step is the other network's."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--turns", type=int, default=6)
args = parser.parse_args()
critic, maker = nn.Linear(4, 1).cuda(), nn.Linear(4, 4).cuda()
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
maker_optimizer = torch.optim.SGD(maker.parameters(), lr=0.1)
for step in range(200):
    loss = critic(maker(torch.randn(8, 4, device="cuda"))).mean()
    if step % args.turns != 0:
        critic_optimizer.zero_grad()
        loss.backward()
        critic_optimizer.step()
    else:
        maker_optimizer.zero_grad()
        loss.backward()
        maker_optimizer.step()
        print(loss.item())
