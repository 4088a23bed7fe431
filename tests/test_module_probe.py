"""Which modules are the loss, and which the model."""

from types import SimpleNamespace

import torch
from torch import nn

from floorit.record.log import Log
from floorit.record.probes.module import _Calls
from floorit.record.wire import OF_LOSS, TRAINED


class ContrastiveLoss(nn.Module):
    """Holds the model, as the losses of sentence-transformers do, or a weight of its own."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner


def facts(module, *trained):
    """What is said of a module while an optimizer updates the parameters of some; of none, before the first step."""
    updated = {id(p) for each in trained for p in each.parameters()}
    return _Calls(SimpleNamespace(log=Log(), torch=torch, trained=updated))._describe(module)


def test_a_loss_that_holds_the_model_is_the_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    loss = ContrastiveLoss(model)
    assert facts(loss, model) == TRAINED
    assert facts(loss) == TRAINED


def test_a_loss_with_a_weight_of_its_own_is_a_loss():
    model, loss = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), ContrastiveLoss(nn.Linear(2, 2))
    assert facts(loss, model, loss) == OF_LOSS | TRAINED
    assert facts(nn.CrossEntropyLoss(), model) == facts(nn.CrossEntropyLoss()) == OF_LOSS


def test_a_loss_with_a_frozen_network_is_a_loss():
    model, loss = nn.Linear(2, 2), ContrastiveLoss(nn.Linear(2, 2).requires_grad_(False))
    assert facts(loss, model) == facts(loss) == OF_LOSS
