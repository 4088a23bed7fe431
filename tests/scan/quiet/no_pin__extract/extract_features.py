"""Runs a trained model over the training data; trains nothing, although what it imports can."""

import torch
from model import Net
from torch.utils.data import DataLoader


def make_loader(dataset):
    return DataLoader(dataset, batch_size=8, shuffle=True, num_workers=4, pin_memory=False)


def main():
    model = Net().cuda()
    for batch in make_loader(torch.load("train.pt")):
        torch.save(model(batch.cuda()), "features.pt")


if __name__ == "__main__":
    main()
