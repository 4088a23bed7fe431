"""Lightning: accumulation, clipping, validation, checkpoints, two loggers, a costly callback."""

import argparse

import lightning as L
import timers
import torch
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed * 100_003 + index)
        x = torch.randn(16, 200, generator=generator)
        return x, x.cumsum(-1).mean(0)[::10]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(16, 64, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(64, 64, 7, padding=3),
            nn.ReLU(),
        )
        self.head = nn.Linear(64 * 200, 20)

    @timers.timed("forward")
    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class Regression(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = Net()
        self.losses = []

    @timers.timed("training_step")
    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.smooth_l1_loss(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        self.losses.append(loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.smooth_l1_loss(self.net(x), y), prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)]


class Histogram(Callback):
    """Counts how the weights are spread, in Python: the costly callback."""

    def __init__(self, count):
        self.count = count

    @timers.timed("callback")
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.bins = [0] * 20
        for value in pl_module.net.head.weight.detach().flatten()[: self.count].tolist():
            self.bins[min(int(abs(value) * 1000), 19)] += 1


class Clock(Callback):
    """Begins and ends the timers with the training."""

    def on_train_start(self, trainer, pl_module):
        timers.restart()

    def on_train_end(self, trainer, pl_module):
        timers.stop()

    def on_validation_start(self, trainer, pl_module):
        timers.begin("validation")

    def on_validation_end(self, trainer, pl_module):
        timers.end()


def watch():
    from lightning.pytorch.loops.optimization.automatic import Closure
    from lightning.pytorch.plugins.precision import Precision
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    timers.watch(torch.Tensor, "backward", "backward")
    timers.watch(torch.optim.AdamW, "step", "step")
    timers.watch(torch.optim.Optimizer, "zero_grad", "zero_grad")
    timers.watch(torch.nn.utils, "clip_grad_norm_", "clip")
    timers.watch(Closure, "closure", "closure")
    timers.watch(Precision, "_after_closure", "closure")
    timers.watch(L.Trainer, "save_checkpoint", "checkpoint")
    timers.watch(CSVLogger, "log_metrics", "logging")
    timers.watch(CSVLogger, "save", "logging")
    timers.watch(TensorBoardLogger, "log_metrics", "logging")
    timers.watch(_BaseDataLoaderIter, "__next__", "data")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--histogram", type=int, default=40_000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--bar", default="tqdm", choices=["tqdm", "rich", "none"])
    args = parser.parse_args()
    L.seed_everything(7, verbose=False)
    torch.set_num_threads(1)
    train = DataLoader(
        Signals(32 * args.batches, 1), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True
    )
    val = DataLoader(Signals(320, 2), batch_size=64)
    callbacks = [
        Histogram(args.histogram),
        ModelCheckpoint(every_n_train_steps=20, save_top_k=-1),
        LearningRateMonitor(),
    ]
    if args.bar == "rich":
        from lightning.pytorch.callbacks import RichProgressBar

        callbacks.append(RichProgressBar())
    if timers.OUT:
        watch()
        callbacks.append(Clock())
    model = Regression()
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        devices=args.devices,
        strategy="ddp" if args.devices > 1 else "auto",
        accumulate_grad_batches=args.accumulate,
        gradient_clip_val=1.0,
        val_check_interval=args.batches // 2,
        log_every_n_steps=5,
        logger=[CSVLogger("logs"), TensorBoardLogger("logs")],
        callbacks=callbacks,
        enable_progress_bar=args.bar != "none",
    )
    trainer.fit(model, train, val)
    if trainer.is_global_zero:
        print("losses", " ".join(f"{loss.item():.9f}" for loss in model.losses))


if __name__ == "__main__":
    main()
