"""Lengths that `pack_padded_sequence` takes as they are lie in the host's memory."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 8, batch_first=True)

    def forward(self, given):
        x, lengths = given
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        longest = lengths.max().item()
        return self.rnn(packed)[1].mean() / longest + self.shortest(lengths)

    def shortest(self, lengths):
        return lengths.min().item()


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model((torch.randn(2, 5, 4, device="cuda"), torch.tensor([5, 3])))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
