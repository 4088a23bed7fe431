from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)

    def fit(self, batches, optimizer):
        for batch in batches:
            self(batch.cuda()).mean().backward()
            optimizer.step()
