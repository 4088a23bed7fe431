"""Batches are dictionaries."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Texts(Dataset):
    def __init__(self):
        self.tokens = torch.randint(0, 500, (600, 24))

    def __len__(self):
        return 600

    def __getitem__(self, index):
        return {"id": f"text-{index}", "tokens": self.tokens[index], "label": int(self.tokens[index].sum()) % 4}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(500, 128)
        self.rnn = nn.GRU(128, 128, batch_first=True)
        self.head = nn.Linear(128, 4)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[1][-1])


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for epoch in range(3):
    for batch in DataLoader(Texts(), batch_size=15):
        tokens, label = batch["tokens"].to(device), batch["label"].to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens=tokens), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(losses)
