"""A few views, cut out of one tensor under the name that it had."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Views(nn.Module):
    def forward(self, student, teacher):
        student = student / 0.1
        student = student.chunk(4)
        teacher = torch.softmax(teacher, dim=-1)
        teacher = teacher.detach().chunk(2)
        total = 0
        for i, q in enumerate(teacher):
            for j, v in enumerate(student):
                if i != j:
                    total += torch.sum(-q * torch.log_softmax(v, dim=-1), dim=-1).mean()
        return total


model, criterion = nn.Linear(4, 3).to(device), Views()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    out = model(torch.randn(8, 4, device=device))
    loss = criterion(out, out)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
