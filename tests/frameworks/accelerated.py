"""accelerate: a raw loop with `prepare` and `accumulate`, evaluation, saved states, a tracker, a costly metric."""

import argparse

import timers
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def dataset(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, 24, 24, generator=generator)
    return TensorDataset(x, x[:, :, ::6, ::6].mean(1).flatten(1).argmax(1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.AvgPool2d(6)
        )
        self.head = nn.Linear(48 * 16, 16)

    @timers.timed("forward")
    def forward(self, x):
        return self.head(self.features(x).flatten(1))


@timers.timed("callback")
def confusion(predicted, truth):
    """Counts pairs in Python: the costly metric."""
    counts = {}
    for _ in range(60):
        for p, t in zip(predicted.tolist(), truth.tolist(), strict=True):
            counts[p, t] = counts.get((p, t), 0) + 1
    return counts


@timers.timed("validation")
@torch.no_grad()
def evaluate(model, loader, accelerator):
    model.eval()
    right = total = 0
    for x, y in loader:
        predicted, truth = accelerator.gather_for_metrics((model(x).argmax(1), y))
        right += (predicted == truth).sum().item()
        total += len(truth)
    model.train()
    return right / total


def watch():
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    timers.watch(torch.Tensor, "backward", "backward")
    timers.watch(torch.optim.SGD, "step", "step")
    timers.watch(torch.optim.SGD, "zero_grad", "zero_grad")
    timers.watch(torch.nn.utils, "clip_grad_norm_", "clip")
    timers.watch(Accelerator, "save_state", "checkpoint")
    timers.watch(Accelerator, "log", "logging")
    timers.watch(_BaseDataLoaderIter, "__next__", "data")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=1)
    args = parser.parse_args()
    if timers.OUT:
        watch()
    torch.set_num_threads(1)
    set_seed(7)
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate, log_with="tensorboard", project_dir="logs")
    accelerator.init_trackers("run")
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train = DataLoader(dataset(32 * 120, 1), batch_size=32, shuffle=True, num_workers=2)
    held_out = DataLoader(dataset(640, 2), batch_size=64)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 40)
    model, optimizer, train, held_out, scheduler = accelerator.prepare(model, optimizer, train, held_out, scheduler)
    losses, step = [], 0
    timers.restart()
    for _ in range(2):
        for x, y in train:
            with accelerator.accumulate(model):
                out = model(x)
                loss = criterion(out, y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            confusion(out.argmax(1), y)
            step += 1
            losses.append(loss.item())
            if step % 5 == 0:
                accelerator.log({"loss": losses[-1]}, step=step)
            if step % 30 == 0:
                accelerator.print(f"{step}: accuracy {evaluate(model, held_out, accelerator):.4f}")
            if step % 20 == 0:
                accelerator.save_state(f"state/{step}")
    timers.stop()
    accelerator.print("losses", " ".join(f"{loss:.9f}" for loss in losses))
    accelerator.end_training()


if __name__ == "__main__":
    main()
