"""How many samples a batch holds."""

from types import SimpleNamespace

import pytest

from floorit.record.probes.loader import _samples


def tensor(*shape):
    return SimpleNamespace(shape=shape)


def loader(batch_size):
    return SimpleNamespace(batch_size=batch_size, by_length=None)


@pytest.mark.parametrize(
    ("batch", "batch_size", "samples"),
    [
        ([tensor(32, 3), tensor(32)], 32, 32),
        ([tensor(7, 3), tensor(7)], 32, 7),  # the last of a pass
        ([tensor(3, 9)] * 32, 32, 32),  # a list of samples of any size
        (SimpleNamespace(x=tensor(1280, 16), y=tensor(32)), 32, 32),  # graphs: the nodes of all of them, end to end
        ([tensor(64, 3), tensor(64, 3)], 32, 32),  # two views of each sample
        ([tensor(1, 5000, 3)], 1, 1),
        ([tensor(5000, 3)], None, 5000),  # the dataset makes the batches
    ],
)
def test_samples_are_what_the_loader_puts_into_a_batch(batch, batch_size, samples):
    assert _samples(batch, loader(batch_size)) == samples
