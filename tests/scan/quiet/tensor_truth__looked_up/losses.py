from torch import nn


class Plain(nn.Module):
    def forward(self, output):
        return output.square().mean()


class Careful(nn.Module):
    def forward(self, output):
        loss = output.abs().mean()
        if loss > 2:
            loss = loss / 2
        return loss
