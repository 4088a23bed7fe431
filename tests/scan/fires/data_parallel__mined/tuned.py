"""Goes on to a function that trains, as far as its name tells."""

import torch
from data import get_train_dataset
from keen import train_model
from torch import nn


def main():
    model = nn.DataParallel(nn.Linear(4, 1)).cuda()  # finds: data-parallel
    train_model(model, get_train_dataset())


if __name__ == "__main__":
    main()
