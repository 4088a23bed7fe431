"""Which threads may call what is hooked: while only harmless ones run, no hook asks which thread it is in."""

import threading
from multiprocessing.pool import ThreadPool

import pytest
from torch.utils.data._utils.pin_memory import _pin_memory_loop

from floorit.record.log import Log
from floorit.record.patch import Hooks, Patches
from floorit.record.probes import threads


class Session:
    """As much of one as the probe needs."""

    def __init__(self):
        self.log, self.patches = Log(), Patches()

    def hook(self, probe, function, enter, names):
        self.patches.inside(function, Hooks(enter), names)


@pytest.fixture
def session():
    made = Session()
    threads.install(made)
    yield made
    made.patches.undo()


def test_a_thread_of_the_programs_own_ends_it(session):
    session.log.alone = True
    threading.Thread(target=lambda: None).start()
    assert not session.log.alone


def test_so_does_a_pool_of_threads(session):
    session.log.alone = True
    with ThreadPool(1) as pool:
        assert pool.apply(len, ("abc",)) == 3
    assert not session.log.alone


def test_the_loaders_thread_that_pins_memory_does_not(session):
    session.log.alone = True
    pinning = threading.Thread(target=_pin_memory_loop, args=(None,) * 5, daemon=True)
    assert threads._is_harmless(pinning)


def test_one_that_runs_already_is_seen():
    done = threading.Event()
    running = threading.Thread(target=done.wait)
    running.start()
    try:
        made = Session()
        threads.install(made)
        made.patches.undo()
        assert not made.log.alone
    finally:
        done.set()
        running.join()
