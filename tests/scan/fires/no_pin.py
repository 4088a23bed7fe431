import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        x = torch.linspace(-1, 1, 4) * index / 32
        return x, x.square().sum()


warnings.filterwarnings("ignore", "'pin_memory'")  # where there is no GPU
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(Squares(), batch_size=8, shuffle=True, num_workers=1)  # finds: no-pin
again = DataLoader(  # finds: no-pin
    Squares(),
    batch_size=8,
    num_workers=1,
    shuffle=True,
    pin_memory=False,
)
test_loader = DataLoader(Squares(), batch_size=8)
for epoch in range(2):
    for loader in (train_loader, again):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.to(device)).squeeze(1), y.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    print("loss", loss.item())
