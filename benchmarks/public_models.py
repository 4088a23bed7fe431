"""Trains a public model on made-up data: one of torchvision's, or transformers' GPT-2, with weights of its own making.

python benchmarks/public_models.py resnet50 --batch 64 --steps 60
"""

import argparse
import contextlib

import torch
from torch.utils.data import DataLoader, Dataset

LENGTH = 512  # tokens of a text


class Made(Dataset):
    def __init__(self, name, count):
        self.name, self.count = name, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.name == "gpt2":
            return torch.randint(0, 50257, (LENGTH,)), 0
        return torch.zeros(3, 224, 224).normal_(), index % 1000


def build(name):
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        return GPT2LMHeadModel(GPT2Config())
    import torchvision

    return getattr(torchvision.models, name)(weights=None)


def loss_of(model, name, batch, targets):
    if name == "gpt2":
        return model(input_ids=batch, labels=batch).loss
    return torch.nn.functional.cross_entropy(model(batch), targets)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="gpt2, or a classifier of torchvision's: resnet50, vit_b_16")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--amp", action="store_true", help="bfloat16")
    given = parser.parse_args()
    torch.manual_seed(0)
    model = build(given.model).cuda().train()
    convolves = given.model.startswith("resnet")
    kind = torch.optim.SGD if convolves else torch.optim.AdamW
    optimizer = kind(model.parameters(), lr=1e-4, **({"momentum": 0.9} if convolves else {}))
    loader = DataLoader(Made(given.model, given.batch * given.steps), given.batch, num_workers=4, pin_memory=True)
    for batch, targets in loader:
        batch, targets = batch.cuda(non_blocking=True), targets.cuda(non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16) if given.amp else contextlib.nullcontext():
            loss = loss_of(model, given.model, batch, targets)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
