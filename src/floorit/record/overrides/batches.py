"""How many samples a batch has: of a loader that is trained from, in the same order of samples.

With them goes the rule of the learning rate (rates.py).
"""

from ..known import Known
from .rates import Rates
from .training import evaluates

NAME = "batches of another size"
CODES = ("batch",)
_NO_LOADER = "no DataLoader of torch's is trained from"
_ONE_BY_ONE = "the loader hands out samples one by one: what is in a batch is decided elsewhere"
_SHUFFLES = ("RandomSampler", "DistributedSampler", "SubsetRandomSampler", "WeightedRandomSampler")


def install(session, asked):
    from torch.utils.data import DataLoader

    (applied,) = asked.values()
    applied.unmet(_NO_LOADER)
    batches = _Batches(session, applied)
    session.before_pass.append(batches.begin)
    session.hook(NAME, DataLoader.__len__, batches.is_measured, names=("self",))


class _Batches:
    """Those of every loader that the program trains from."""

    def __init__(self, session, applied):
        self._session = session
        self._applied = applied
        self._own = Known()  # of a sampler of batches: the size that the program has made it with
        self._rates = Rates(session, applied)

    def begin(self, loader, place):
        """A pass over a loader that was made at `place` begins."""
        try:
            if not evaluates(self._session) and self._resize(loader):
                own, size = self._own[id(loader.batch_sampler)], loader.batch_sampler.batch_size
                self._rates.times = size / own
                if size != own:
                    self._applied.opposed(own, place)
                self._applied.act()
        except Exception as error:
            self._applied.fail("a loader could not be changed: %r" % (error,))

    def is_measured(self, loader):
        """The program asks how many batches there are, perhaps to plan a schedule: of one that is sure to be trained
        from, it is told how many there will be."""
        if type(loader.sampler).__name__ in _SHUFFLES:
            self._resize(loader)

    def _resize(self, loader):
        """Whether its batches have the size that is asked for now."""
        sampler = loader.batch_sampler
        if sampler is None:
            return self._applied.unmet(_ONE_BY_ONE)
        own = self._own.get(id(sampler)) or getattr(sampler, "batch_size", 0)
        size = self._size_for(own)
        obstacle = _obstacle(sampler, size)
        if obstacle is not None:
            return self._applied.fail(obstacle)
        if id(sampler) not in self._own:
            self._own.learn(sampler, own)
            self._session.patches.assign(sampler, "batch_size", size)
        if loader.batch_size is not None:
            self._session.patches.assign(loader, "batch_size", sampler.batch_size)
        return True

    def _size_for(self, own):
        value = self._applied.value
        return int(value[1:]) * own if isinstance(value, str) else value


def _obstacle(sampler, size):
    """Why the batches of a sampler cannot have that size, or None."""
    from torch.utils.data import BatchSampler

    if type(sampler) is not BatchSampler:
        return "batches are made by the program's own %s" % type(sampler).__name__
    if sampler.drop_last and type(sampler.sampler).__module__.startswith("torch.") and _count(sampler.sampler) < size:
        return "the data has fewer samples than that, and what does not fill a batch is dropped"
    return None


def _count(sampler):
    try:
        return len(sampler)
    except TypeError:
        return float("inf")  # an IterableDataset may not know
