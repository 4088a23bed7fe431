"""The size of batches: planted curves of memory and speed, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from floorit.tune import sizes
from floorit.tune.sizes import Size

MIB = 1 << 20


def searched(
    own: int,
    peak: Callable[[int], float],
    rate: Callable[[int], float],
    limit: float,
    cap: float | None = None,
    most: int | None = None,
) -> sizes.Sizes:
    """As a search runs sizes: one that takes more than the cap is out of memory."""
    seen: list[Size] = []
    limits = {"gpu": int(limit)}
    while (size := sizes.next_size(own, seen, limits, most)) is not None:
        assert size not in [one.size for one in seen], "a size is run once"
        if peak(size) > (cap or limit):
            seen.append(Size(size=size, state="out of memory", reason="CUDA ran out of memory"))
        else:
            seen.append(Size(size=size, state="ran", rate=rate(size), peaks={"gpu": int(peak(size))}))
    return sizes.choose(own, seen, limits, most)


def ever_faster(size: int) -> float:
    return size / (1.0 + 0.001 * size)


def affine(size: int) -> float:
    return (500 + 10 * size) * MIB


def test_on_a_line_no_size_that_does_not_fit_is_run():
    found = searched(8, affine, ever_faster, limit=8000 * MIB)
    assert all(one.state == "ran" for one in found.seen)
    assert found.by == "memory"
    assert 600 <= found.chosen <= 750  # (8000 - 500) / 10 is where it would be full
    assert affine(found.chosen) <= 8000 * MIB


def test_a_step_is_found_by_halving():
    """An algorithm that takes 3 GiB more from 100 on: no line foretells it."""
    found = searched(8, lambda b: affine(b) + (6000 * MIB if b >= 100 else 0), ever_faster, limit=7000 * MIB)
    assert [one.state for one in found.seen].count("out of memory") >= 1
    assert 80 <= found.chosen < 100
    assert found.by == "memory"


def test_what_grows_faster_than_a_line_never_ends_in_a_size_that_does_not_fit():
    def curved(b: int) -> float:
        return (500 + b + 0.5 * b * b) * MIB

    found = searched(4, curved, ever_faster, limit=6000 * MIB)
    assert curved(found.chosen) <= 6000 * MIB
    assert 80 <= found.chosen <= 104  # 103.9 is where it would be full


def test_the_knee_is_taken_and_not_the_fullest():
    """Nothing is gained over 64, and there is room for 700."""
    found = searched(8, affine, lambda b: min(b, 64) / 0.1, limit=8000 * MIB)
    assert found.chosen == 64
    assert found.by == "knee"
    assert found.predicted.value == pytest.approx(8.0)
    assert max(one.size for one in found.seen) == 256  # no more was run than shows it


def test_where_a_larger_batch_gains_nothing_none_is_chosen():
    found = searched(32, affine, lambda b: 100.0, limit=8000 * MIB)
    assert found.chosen is None
    assert [one.size for one in found.seen] == [32, 64, 128]
    assert "no larger batch" in found.why


def test_a_program_whose_own_size_does_not_fit_is_given_one_that_does():
    found = searched(256, affine, ever_faster, limit=1200 * MIB)
    assert found.seen[0].state == "out of memory"
    assert found.chosen == 64  # 70 is where it would be full
    assert found.predicted is None  # there is nothing to compare with


def test_nothing_fits():
    found = searched(8, lambda b: 9000 * MIB, ever_faster, limit=1200 * MIB)
    assert found.chosen is None
    assert found.by == "failure"
    assert [one.size for one in found.seen] == [8, 4, 2, 1]


def test_the_data_has_no_more():
    found = searched(8, affine, ever_faster, limit=80000 * MIB, most=100)
    assert found.chosen == 96
    assert found.by == "data"


def test_every_budget_counts():
    seen = [
        Size(size=8, state="ran", rate=80.0, peaks={"gpu": 100, "shared": 100}),
        Size(size=16, state="ran", rate=150.0, peaks={"gpu": 120, "shared": 200}),
    ]
    assert sizes.next_size(8, seen, {"gpu": 1000, "shared": 1000}) == 32
    assert sizes.next_size(8, seen, {"gpu": 1000, "shared": 330}) == 24
    assert not sizes.fits(seen[1], {"shared": 150})


def test_a_line_is_not_moved_by_one_point_and_its_bound_is_over_all_points():
    points = [(8, 580), (16, 660), (32, 820), (64, 1400), (128, 1780)]
    line = sizes.fit(points)
    assert line.slope == pytest.approx(10.0, rel=0.1)
    assert all(line.most_at(x) >= y for x, y in points)
    assert not sizes.is_affine(line, points)
    assert line.most_at(line.largest(3000)) <= 3000 + 1e-6


def test_one_run_that_had_bad_luck_does_not_end_it():
    found = searched(8, affine, lambda b: 50.0 if b == 16 else min(b, 64) / 0.1, limit=8000 * MIB)
    assert found.chosen == 64


def test_noise_of_a_few_per_cent_does_not_make_a_knee_of_the_largest():
    seen = [
        Size(size=8, state="ran", rate=100.0),
        Size(size=16, state="ran", rate=180.0),
        Size(size=32, state="ran", rate=183.0),
    ]
    assert sizes.knee(seen).size == 16
