"""Goes through the training set to find neighbours; trains nothing."""

import torch
from data import get_train_dataset
from torch import nn


def main():
    model = nn.DataParallel(nn.Linear(4, 1)).cuda()
    with torch.no_grad():
        outputs = [model(x.cuda()) for x in get_train_dataset()]
    print(torch.cat(outputs).argmax())


if __name__ == "__main__":
    main()
