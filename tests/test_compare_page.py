"""The page of `floorit compare` says what the two reports say, and runs nobody's code."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import tarfile
from pathlib import Path
from typing import Any

import browser
import msgspec
import numpy as np
import pytest
from parsed import HOSTILE, Parsed

from floorit import cli
from floorit.analyse.settings import Setting
from floorit.compare import comparison, page, proof
from floorit.compare.comparison import Side
from floorit.compare.speed import Pace
from floorit.fixes import asked
from floorit.report.words import PHASES
from floorit.stats import Estimate, seconds

RECORDS = Path(__file__).parent / "records"
Sides = tuple[Side, Side]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same program, limited by its data and by the GPU."""
    made = []
    for kind in ("data", "compute"):
        made.append(tmp_path_factory.mktemp(kind))
        with tarfile.open(RECORDS / f"{kind}.tar.xz") as archive:
            archive.extractall(made[-1], filter="data")
    return made


@pytest.fixture(scope="module")
def sides(folders: list[Path]) -> Sides:
    return comparison.read(folders[0]), comparison.read(folders[1])


def drawn(a: Side, b: Side) -> Parsed:
    return Parsed(page.render(comparison.compare(a, b), a, b))


@pytest.fixture(scope="module")
def parsed(sides: Sides) -> Parsed:
    return drawn(*sides)


def but(side: Side, **changes: Any) -> Side:
    """The same run with some of its report replaced."""
    return msgspec.structs.replace(side, report=msgspec.structs.replace(side.report, **changes))


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def differences(sides: Sides) -> dict[str, float]:
    """Seconds of B less those of A, by phase, those that differ most first."""
    a, b = ({entry.phase: entry.seconds for entry in side.report.ledger} for side in sides)
    found = {phase: b.get(phase, 0.0) - a.get(phase, 0.0) for phase in {*a, *b}}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


# -- what it says ---------------------------------------------------------------------------------------------------


def test_the_verdict_comes_first_with_its_interval_and_what_it_rests_on(sides: Sides, parsed: Parsed) -> None:
    found = comparison.compare(*sides)
    assert found.speed is not None
    ratio = found.speed.ratio
    verdict = f"B is {ratio.value:.2f} times as fast as A, between {ratio.low:.2f} and {ratio.high:.2f}."
    words = flat(parsed.words)
    first = words.partition("Where a step's time went")[0]
    assert f"Verdict slower {verdict}" in first
    assert "It rests on one run of each." in first
    assert found.caveats
    assert all(caveat[1:] in first for caveat in found.caveats)


def test_what_cannot_be_told_is_not_claimed(sides: Sides) -> None:
    same = flat(drawn(sides[0], sides[0]).words)
    assert "Unclear: B is 1.00 times as fast as A" in same
    assert "The same in both: settings in force, machine and versions, command." in same
    single = msgspec.structs.replace(sides[0], pace=Pace(seconds=np.array([0.1]), samples=1))
    words = flat(drawn(single, sides[0]).words)
    assert "No claim of speed." in words
    assert "fewer than two steps" in words
    assert "times as fast" not in words


def test_a_run_of_which_no_step_counts_has_no_curve(sides: Sides) -> None:
    none = msgspec.structs.replace(sides[0], pace=Pace(seconds=np.array([]), samples=None))
    found = drawn(none, sides[0])
    assert found.data["paces"] is None
    assert "chart-paces" not in found.ids


def test_phases_are_told_by_how_much_they_differ(sides: Sides, parsed: Parsed) -> None:
    words = flat(parsed.words).partition("B less A")[2].partition("all of it")[0]
    large = [phase for phase, difference in differences(sides).items() if abs(difference) > 1e-3]
    assert len(large) > 3
    places = [words.index(PHASES[phase]) for phase in large]
    assert places == sorted(places)
    for phase in large:
        before, after = ([e.seconds for e in side.report.ledger if e.phase == phase] for side in sides)
        assert f"{PHASES[phase]}{seconds(before[0])}{seconds(after[0])}" in words


def test_bars_lie_on_the_side_of_zero_that_their_difference_has(sides: Sides, parsed: Parsed) -> None:
    spans = itertools.pairwise(attribute for attribute in parsed.attributes if attribute[0] == "span")
    bars = [
        (kind, float(re.sub("[^0-9.]", "", style)))
        for (_, name, kind), (_, _, style) in spans
        if name == "class" and kind in ("less", "more")
    ]
    by_size = list(differences(sides).values())[:5]
    for (kind, width), difference in zip(bars[:5], by_size, strict=True):
        assert kind == ("less" if difference < 0 else "more")
        assert width == pytest.approx(50 * abs(difference) / abs(by_size[0]), abs=0.01)


def test_both_ledgers_are_on_one_scale(sides: Sides, parsed: Parsed) -> None:
    means = [side.report.step.mean for side in sides if side.report.step is not None]
    widths = [
        float(style.removeprefix("width:").removesuffix("%"))
        for tag, name, style in parsed.attributes
        if (tag, name) == ("div", "style") and style.startswith("width:")
    ]
    assert widths == pytest.approx([100 * mean / max(means) for mean in means], abs=0.01)


def test_findings_that_are_new_and_gone(parsed: Parsed) -> None:
    words = flat(parsed.words)
    assert "new in Bcompute-bound: the model's own work takes the time" in words
    assert "gone in Binput-bound: the training loop waits for data" in words


@pytest.mark.parametrize(("count", "samples"), [(7, None), (1234, 4)])
def test_curves_keep_the_time_that_they_are_made_of(sides: Sides, count: int, samples: int | None) -> None:
    each = np.random.default_rng(3).uniform(0.1, 0.2, count)
    side = msgspec.structs.replace(sides[0], pace=Pace(seconds=each, samples=samples))
    of = page.curve(side, "sample" if samples else "step")
    assert len(of.means) <= page.MOST_BINS
    assert sum(of.sizes) == count
    assert of.ends[-1] == pytest.approx(each.sum())
    spent = np.dot(of.means, of.sizes) * (samples or 1)
    assert spent == pytest.approx(each.sum())
    rows = page.rows(of)
    assert len(rows) <= page.MOST_ROWS
    assert rows[0][0].startswith("1")
    assert rows[-1][0].endswith(f"{count:,}")
    assert rows[-1][1] == pytest.approx(each.sum())
    last = int(rows[0][0].rpartition(" ")[2])
    assert rows[0][2] == pytest.approx(each[:last].mean() / (samples or 1))


def test_half_as_fast_lies_as_far_from_the_middle_as_twice() -> None:
    def at(value: float) -> page.Scale:
        of = Estimate(value=value, low=value / 1.2, high=value * 1.2, n=1)
        return page.scale(of, of)

    slow, same, fast = at(0.5), at(1.0), at(2.0)
    assert same.value == 0.5
    assert slow.value == pytest.approx(1 - fast.value)
    assert 0 < slow.low < slow.value < slow.high < 0.5 < fast.low < fast.value < fast.high < 1


# -- the proof ------------------------------------------------------------------------------------------------------


def with_settings(side: Side, **actual: Any) -> Side:
    named = {name.replace("__", "."): value for name, value in actual.items()}
    return but(side, settings=[Setting(name=name, actual=value) for name, value in named.items()])


def tried(a: Side, b: Side) -> str | None:
    return proof.command(comparison.compare(a, b), a)


def test_settings_that_differ_are_tried_on_the_first_program(sides: Sides) -> None:
    before = {"num_workers": 0, "autocast": "off", "pin_memory": True, "torch__compile": False, "eval__num_workers": 0}
    after = {"num_workers": 8, "autocast": "bfloat16", "pin_memory": True, "torch__compile": True}
    found = tried(with_settings(sides[0], **before), with_settings(sides[1], **after, eval__num_workers=4))
    assert found is not None
    words = shlex.split(found)
    assert words == [
        *("floorit", "try", "--fix", "workers=8", "--fix", "amp=bf16", "--"),
        *sides[0].report.program.command,
    ]
    assert asked.parse(words[3:6:2]) == {"workers": 8, "amp": "bf16"}


def test_fixes_of_the_second_run_are_tried_and_not_those_of_the_first(sides: Sides) -> None:
    fixed = msgspec.structs.replace(sides[0], fixes={"workers": 4})
    command = shlex.join(sides[0].report.program.command)
    assert tried(sides[0], fixed) == f"floorit try --fix workers=4 -- {command}"
    more = msgspec.structs.replace(sides[0], fixes={"workers": 8})
    assert tried(fixed, more) is None  # what A ran is not what its command runs


def test_without_a_setting_that_a_fix_changes_there_is_nothing_to_try(sides: Sides, parsed: Parsed) -> None:
    unlike = with_settings(sides[0], optimizer__lr=0.1), with_settings(sides[1], optimizer__lr=0.2)
    assert tried(*unlike) is None
    unset = with_settings(sides[0], prefetch_factor=2), with_settings(sides[1], prefetch_factor=None)
    assert tried(*unset) is None
    assert "Prove it" not in parsed.words


# -- what it is -----------------------------------------------------------------------------------------------------


def hostile(sides: Sides) -> tuple[comparison.Comparison, Side, Side]:
    """Two runs of which nothing can be trusted."""
    program, first = sides[1].report.program, sides[1].report.findings[0]
    a = with_settings(sides[0], num_workers=0, shape="square")
    b = but(
        with_settings(sides[1], num_workers=8, shape=HOSTILE),
        program=msgspec.structs.replace(program, command=["python", HOSTILE]),
        findings=[msgspec.structs.replace(first, title=HOSTILE)],
        environment=msgspec.structs.replace(sides[1].report.environment, gpu=HOSTILE),
    )
    b = msgspec.structs.replace(b, folder=f"/tmp/{HOSTILE}")
    found = comparison.compare(a, b)
    return msgspec.structs.replace(found, caveats=[HOSTILE]), a, b


def test_no_string_can_leave_its_place(sides: Sides, parsed: Parsed) -> None:
    found = Parsed(page.render(*hostile(sides)))
    assert found.scripts[1:] == parsed.scripts[1:]
    assert len(found.scripts) == 3
    assert not [tag for tag, name, _ in found.attributes if name.startswith("on") or tag == "img"]
    assert found.words.count(HOSTILE) >= 5
    assert "<" not in found.scripts[0]


def test_it_has_its_landmarks_and_text_for_its_charts(parsed: Parsed) -> None:
    levels = [int(heading[1]) for heading in parsed.headings]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert {"ledger", "steps", "findings", "differences", "chart-paces"} <= parsed.ids
    assert "The steps as a table" in parsed.words
    links = [value[1:] for _, name, value in parsed.attributes if name == "href"]
    assert set(links) <= parsed.ids


# -- the command ----------------------------------------------------------------------------------------------------


def test_the_page_is_written_and_its_path_said(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "compared.html"
    words = ["compare", "--html", str(file), "--fail-if", "slower=5%", *map(str, folders)]
    assert cli.main(words) == 1
    told = capsys.readouterr()
    assert Path(told.out.strip()).resolve() == file
    assert "slower than" in told.err
    assert "Verdict slower" in flat(Parsed(file.read_text()).words)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_without_a_file_it_is_beside_the_second_run(
    folders: list[Path], at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*map(str, folders)]
    assert cli.main(["compare", *words[:at], "--html", *words[at:]]) == 0
    file = folders[1] / "compare.html"
    assert Path(capsys.readouterr().out.strip()).resolve() == file
    assert "Verdict slower" in flat(Parsed(file.read_text()).words)
    file.unlink()


def test_a_page_that_cannot_be_written_is_one_line(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", "--html", str(tmp_path), *map(str, folders)]) == 73
    told = capsys.readouterr().err
    assert told.startswith("floorit: the page cannot be written: Is a directory")
    assert told.count("\n") == 1


# -- in a browser ---------------------------------------------------------------------------------------------------

needs_chromium = pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_in_both_schemes(sides: Sides, chromium: browser.Browser, tmp_path: Path, dark: bool) -> None:
    file = tmp_path / "compared.html"
    file.write_text(page.render(*hostile(sides)))
    chromium.open(file, width=390, height=844, dark=dark)
    assert chromium.errors == []
    assert [url.partition(":")[0] for url in chromium.requests] == ["file"]
    assert chromium.run("document.documentElement.scrollWidth") == 390
    assert chromium.run("typeof window.pwned + document.querySelectorAll('img').length") == "undefined0"
    ledger = "document.querySelector('.both').parentElement"
    assert chromium.run(f"{ledger}.scrollWidth <= {ledger}.clientWidth")


@pytest.mark.browser
@needs_chromium
def test_the_chart_draws_its_data(sides: Sides, parsed: Parsed, chromium: browser.Browser, tmp_path: Path) -> None:
    file = tmp_path / "compared.html"
    file.write_text(page.render(comparison.compare(*sides), *sides))
    chromium.open(file)
    assert chromium.errors == []
    chart = "echarts.getInstanceByDom(document.getElementById('chart-paces'))"
    series = json.loads(chromium.run(f"JSON.stringify({chart}.getOption().series.map(s => s.data))"))
    for side, points in zip("ab", series, strict=True):
        of = parsed.data["paces"][side]
        assert points == [[0, of["means"][0]], *map(list, zip(of["ends"], of["means"], strict=True))]
    chromium.run("document.querySelector('[data-for=chart-paces] [data-zoom=in]').click()")
    zoom = json.loads(chromium.run(f"JSON.stringify({chart}.getOption().dataZoom[0])"))
    assert (zoom["start"], zoom["end"]) == pytest.approx((25, 75))


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("width", [390, 1400])
def test_findings_stand_under_each_other(sides: Sides, chromium: browser.Browser, tmp_path: Path, width: int) -> None:
    found = comparison.compare(*sides)
    several = [msgspec.structs.replace(found.findings[0], code=f"cost-{at}", a=None, b=at) for at in range(3)]
    file = tmp_path / "compared.html"
    file.write_text(page.render(msgspec.structs.replace(found, findings=several), *sides))
    chromium.open(file, width=width)
    edges = "[...document.querySelectorAll('#findings dd')].map(at => at.getBoundingClientRect())"
    lefts, tops = (chromium.run(f"{edges}.map(at => at.{edge})") for edge in ("left", "top"))
    assert len(set(lefts)) == 1
    assert tops == sorted(set(tops))
    beside = chromium.run("document.querySelector('#findings dt').getBoundingClientRect().right")
    assert (lefts[0] >= beside) == (width > 640)
