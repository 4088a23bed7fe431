"""An AdamW written by hand that goes through many small parameters one by one, with a norm for each."""
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class ClippedAdamW(Optimizer):
    """AdamW that clips each parameter's update by itself."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["mean"], state["square"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state["mean"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["square"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                mean = state["mean"] / (1 - beta1 ** state["step"])
                root = (state["square"] / (1 - beta2 ** state["step"])).sqrt().add_(group["eps"])
                update = mean / root
                update /= max(1.0, update.norm().item())
                p.add_(update, alpha=-group["lr"])


class Experts(nn.Module):
    """Many small towers, one for each feature."""

    def __init__(self, features=40, width=8):
        super().__init__()
        self.towers = nn.ModuleList(nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1)) for _ in range(features))

    def forward(self, x):
        return sum(tower(column) for tower, column in zip(self.towers, x.split(1, dim=1)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(2560, 40)
    loader = DataLoader(TensorDataset(x, x.sin().sum(1, keepdim=True)), batch_size=32)
    model = Experts()
    optimizer = ClippedAdamW(model.parameters())
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


main()
