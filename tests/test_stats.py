"""Intervals cover the truth about as often as they claim, by simulation."""

import msgspec
import numpy as np
import pytest

from floorit import stats

CLAIMED = stats.CONFIDENCE


def _coverage(estimator, draw, truth, rounds=1500):
    dice = np.random.default_rng(0)
    found = [estimator(draw(dice)) for _ in range(rounds)]
    return np.mean([e.low <= truth <= e.high for e in found])


def _normal(n):
    return lambda dice: dice.normal(10, 1, n)


def _long_tailed(n):
    return lambda dice: dice.lognormal(0, 1, n)


def _autocorrelated(n, memory):
    """Each value remembers the one before it; mean and median are 10."""

    def draw(dice):
        noise = dice.normal(0, 1, n)
        values = np.empty(n)
        values[0] = noise[0] / np.sqrt(1 - memory**2)
        for at in range(1, n):
            values[at] = memory * values[at - 1] + noise[at]
        return 10 + values

    return draw


@pytest.mark.parametrize("n", [5, 10, 50, 400])
@pytest.mark.parametrize(("draw", "centre"), [(_normal, 10.0), (_long_tailed, 1.0)])
def test_the_median_covers_whatever_the_distribution(draw, centre, n):
    assert _coverage(stats.median, draw(n), centre) >= CLAIMED - 0.025


@pytest.mark.parametrize("n", [50, 400])
def test_the_median_is_not_much_wider_than_it_must_be(n):
    assert _coverage(stats.median, _normal(n), 10.0) <= 0.99


@pytest.mark.parametrize("n", [2, 5, 19, 20, 50, 400])
def test_the_mean_covers_as_often_as_it_claims(n):
    assert abs(_coverage(stats.mean, _normal(n), 10.0) - CLAIMED) <= 0.02


def test_the_mean_of_a_long_tail_covers_nearly_as_often():
    truth = float(np.exp(0.5))
    assert _coverage(stats.mean, _long_tailed(400), truth) >= CLAIMED - 0.06


def test_blocks_make_the_mean_hold_where_neighbours_are_alike():
    assert _coverage(stats.mean, _autocorrelated(2000, 0.7), 10.0, rounds=400) >= CLAIMED - 0.03


def test_with_few_observations_that_are_alike_the_mean_claims_too_much():
    """Honest note: 20 blocks of 2 neighbours each are not independent; the interval is then too narrow."""
    assert _coverage(stats.mean, _autocorrelated(40, 0.7), 10.0, rounds=400) < CLAIMED - 0.05


def test_where_neighbours_are_alike_the_median_claims_too_much():
    """Honest note: order statistics take the observations as independent, and steps of one run are not."""
    assert _coverage(stats.median, _autocorrelated(400, 0.7), 10.0, rounds=400) < CLAIMED - 0.05


@pytest.mark.parametrize("estimator", [stats.median, stats.mean])
def test_of_nothing_there_is_no_estimate(estimator):
    assert estimator(np.zeros(0)) is None


@pytest.mark.parametrize("estimator", [stats.median, stats.mean])
@pytest.mark.parametrize("n", [1, 2, 3, 20, 21, 1000])
def test_the_value_lies_in_its_interval_and_n_is_counted(estimator, n):
    found = estimator(np.random.default_rng(n).normal(5, 1, n))
    assert found.low <= found.value <= found.high
    assert found.n == n


@pytest.mark.parametrize("estimator", [stats.median, stats.mean])
def test_without_spread_the_interval_is_the_value(estimator):
    found = estimator(np.full(30, 2.5))
    assert (found.low, found.value, found.high) == pytest.approx((2.5, 2.5, 2.5))


def test_a_rate_turns_the_interval_around():
    found = stats.rate(64, stats.Estimate(value=0.5, low=0.4, high=0.8, n=7))
    assert (found.value, found.low, found.high, found.n) == (128, 80, 160, 7)


def test_a_rate_stays_finite_where_the_seconds_reach_zero():
    found = stats.rate(1, stats.Estimate(value=0.5, low=-0.1, high=1.1, n=3))
    assert found.low <= found.value <= found.high < np.inf


def _factor(n, truth):
    """Pairs whose two halves share what the machine was doing, and differ by a factor."""

    def draw(dice):
        shared = dice.lognormal(0, 0.5, n)
        return truth * shared * dice.lognormal(0, 0.05, n), shared * dice.lognormal(0, 0.05, n)

    return draw


@pytest.mark.parametrize("n", [3, 5, 12])
def test_the_ratio_of_pairs_covers_as_often_as_it_claims(n):
    assert abs(_coverage(lambda pairs: stats.ratio(*pairs), _factor(n, 1.7), 1.7) - CLAIMED) <= 0.02


def test_what_both_halves_of_a_pair_share_does_not_widen_their_ratio():
    found = stats.ratio(np.array([2.0, 20.0, 200.0]), np.array([1.0, 10.0, 100.0]))
    assert (found.value, found.low, found.high, found.n) == pytest.approx((2, 2, 2, 3))


def test_of_no_pairs_there_is_no_ratio():
    assert stats.ratio(np.zeros(0), np.zeros(0)) is None


def test_what_is_never_negative_has_no_negative_end() -> None:
    """Two evaluations of 10 and 14 s: Student's t for two goes far below nothing."""
    seen = np.array([10.0, 14.0])
    unsure = stats.mean(seen)
    assert unsure is not None
    assert unsure.low < 0
    assert stats.mean(seen, least=0.0) == msgspec.structs.replace(unsure, low=0.0)
