from torch import nn


class Model(nn.Linear):
    def __init__(self):
        super().__init__(4, 1)
