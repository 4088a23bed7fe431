import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class MaskedLoss(nn.Module):
    def forward(self, output, target):
        positive = target > 0
        index = positive.nonzero()  # finds: nonzero
        rows = torch.where(target > 0)  # finds: nonzero
        chosen = output[positive & (target < 5)]  # finds: nonzero
        is_whole = torch.isfinite(target).all(dim=-1)
        whole = output[is_whole, :1]  # finds: nonzero
        loss = (output[positive] - target[positive]).abs().mean()  # finds: nonzero
        return loss + 0 * (whole.sum() + chosen.sum() + index.sum() + rows[0].sum())


model = nn.Linear(4, 1).to(device)
criterion = MaskedLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    output = model(torch.rand(8, 4).to(device))
    loss = criterion(output, torch.rand(8, 1).to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kinds = torch.unique(output.round())  # finds: nonzero
