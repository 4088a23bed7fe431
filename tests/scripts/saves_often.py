"""Keeps a full checkpoint after every other step, as a callback of the loop."""
import os
import tempfile

import torch
from torch import nn


class Checkpointer:
    def __init__(self, folder, model, optimizer, every):
        self.folder, self.model, self.optimizer, self.every = folder, model, optimizer, every

    def after_step(self, step, loss):
        if step % self.every:
            return
        state = {"step": step, "loss": loss, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        path = os.path.join(self.folder, "last.ckpt")
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)


def fit(model, optimizer, batches, callbacks):
    for step, (tokens, labels) in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
        for callback in callbacks:
            callback.after_step(step, loss.item())
    return loss.item()


def make_batches(count, vocabulary):
    generator = torch.Generator().manual_seed(7)
    for _ in range(count):
        tokens = torch.randint(vocabulary, (16, 40), generator=generator)
        yield tokens, tokens[:, 0] % 4


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.EmbeddingBag(60000, 64), nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with tempfile.TemporaryDirectory() as folder:
        print(fit(model, optimizer, make_batches(80, 60000), [Checkpointer(folder, model, optimizer, every=2)]))
