"""A trainer that evaluates on all of the held-out data every ten steps."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 384), nn.GELU(), nn.Linear(384, 384), nn.GELU())
        self.head = nn.Linear(384, 5)

    def forward(self, x):
        return self.head(self.body(x))


class Trainer:
    def __init__(self, model, train_set, held_out, evaluate_every=10):
        self.model, self.evaluate_every = model, evaluate_every
        self.train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
        self.held_out = DataLoader(held_out, batch_size=128)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.steps, self.best = 0, float("inf")

    def training_step(self, batch):
        x, y = batch
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1

    @torch.inference_mode()
    def evaluate(self):
        self.model.eval()
        losses = [nn.functional.cross_entropy(self.model(x), y) for x, y in self.held_out]
        self.model.train()
        return torch.stack(losses).mean().item()

    def fit(self):
        for batch in self.train_loader:
            self.training_step(batch)
            if self.steps % self.evaluate_every == 0:
                held_out_loss = self.evaluate()
                self.best = min(self.best, held_out_loss)
                print(f"{self.steps}: {held_out_loss:.5f}, best {self.best:.5f}")


def dataset(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 64, generator=generator)
    return TensorDataset(x, x[:, :5].argmax(1))


torch.manual_seed(0)
torch.set_num_threads(1)
Trainer(Classifier(), dataset(2560, 0), dataset(2560, 1)).fit()
