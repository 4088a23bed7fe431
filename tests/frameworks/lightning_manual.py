"""Lightning, manual optimization: two optimizers that take turns, a stream of data, a costly hook before each step."""

import lightning as L
import timers
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    """Has no length: Lightning reads a batch ahead."""

    def __iter__(self):
        generator = torch.Generator().manual_seed(3)
        for _ in range(100 * 32):
            yield torch.randn(64, generator=generator)


class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 64))
        self.critic = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
        self.losses = []

    @timers.timed("training_step")
    def training_step(self, batch, batch_idx):
        of_generator, of_critic = self.optimizers()
        made = self.generator(torch.randn(len(batch), 16))
        loss = nn.functional.softplus(self.critic(made.detach())).mean()
        loss = loss + nn.functional.softplus(-self.critic(batch)).mean()
        of_critic.zero_grad()
        self.manual_backward(loss)
        of_critic.step()
        fooled = nn.functional.softplus(-self.critic(made)).mean()
        of_generator.zero_grad()
        self.manual_backward(fooled)
        of_generator.step()
        self.losses.append(fooled.detach())
        self.log_dict({"critic": loss, "generator": fooled}, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.generator.parameters(), 1e-3), torch.optim.Adam(self.critic.parameters(), 1e-3)


class Norms(Callback):
    """How large each weight's row is, in Python: the costly hook."""

    @timers.timed("callback")
    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.largest = 0.0
        for row in pl_module.critic[0].weight.detach()[:200].tolist():
            norm = sum(value * value for value in row)
            if norm > self.largest:
                self.largest = norm

    def on_train_start(self, trainer, pl_module):
        timers.restart()

    def on_train_end(self, trainer, pl_module):
        timers.stop()


def main():
    L.seed_everything(7, verbose=False)
    torch.set_num_threads(1)
    timers.watch(torch.Tensor, "backward", "backward")
    timers.watch(torch.optim.Adam, "step", "step")
    timers.watch(torch.optim.Optimizer, "zero_grad", "zero_grad")
    model = Gan()
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", logger=CSVLogger("logs"), callbacks=[Norms()], log_every_n_steps=5
    )
    trainer.fit(model, DataLoader(Stream(), batch_size=32, num_workers=1))
    print("losses", " ".join(f"{loss.item():.9f}" for loss in model.losses))


if __name__ == "__main__":
    main()
