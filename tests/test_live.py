"""The line while a program runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from test_iterations import Rows

from floorit import live
from floorit.analyse import iterations


@pytest.mark.parametrize(("window", "looks"), [(False, 5), (True, 238)], ids=["only a line", "something to ask for"])
def test_a_look_that_takes_long_is_seldom_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: bool, looks: int
) -> None:
    """Each takes 4 s by this clock: within 1,000 s, lines alone may take 20; else one comes a second after another."""
    now, seen = [0.0], []
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    (tmp_path / "status").touch()
    watcher = live.Live(tmp_path, stream=io.StringIO(), quiet=False, steps=None, window=window)

    def read() -> None:
        seen.append(now[0])
        now[0] += 4.0

    monkeypatch.setattr(watcher.reader, "read", read)
    while now[0] < 1000:
        watcher.watch()
        now[0] += 0.2
    assert len(seen) == pytest.approx(looks, abs=0 if not window else 10)


@pytest.mark.parametrize(
    ("pace", "said"),
    [(1.0, "20 s left in this epoch"), (9.0, "3 min 0 s left in this epoch"), (0.02, None), (1e5, None)],
    ids=["long", "longer", "short", "endless"],
)
def test_of_a_short_and_of_an_endless_epoch_the_time_left_is_not_told(
    tmp_path: Path, pace: float, said: str | None
) -> None:
    """Of 30 batches 10 are over: the rest of an epoch of 0.6 s is over before it is read, that of 35 days never is."""
    (tmp_path / "status").touch()
    watcher = live.Live(tmp_path, stream=io.StringIO(), quiet=True, steps=None, window=False)
    rows = Rows().start()
    rows.train(10)
    process = rows.process()
    process.iterators[1] = {"id": 1, "loader": 5, "pids": []}
    process.loaders[5] = {"length": 30}
    found = iterations.find(process)
    assert found is not None
    assert watcher._left(process, found, pace) == said
