"""Each sample is a whole batch of images, and the loader adds a dimension that the loop takes off."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Files(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return {"image": torch.randn(12, 3, 16, 16, generator=generator), "target": torch.randn(12, 8, generator=generator)}


loader = DataLoader(Files(), batch_size=1, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 14 * 14, 8)).to(device)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for epoch in range(2):
    for batch in loader:
        batch = {name: value.squeeze(0).to(device) for name, value in batch.items()}
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch["image"]), batch["target"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses)
