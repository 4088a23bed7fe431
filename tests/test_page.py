"""report.html says what the report and the record say, asks nobody for anything, and runs nobody's code."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import shlex
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import browser
import msgspec
import numpy as np
import pytest
from conftest import FLOORIT, PYTHON, Runs, execute, truths
from parsed import HOSTILE, Parsed

import floorit.report.page as page
from floorit import cli, commandline, replay
from floorit.analyse import iterations, settings
from floorit.analyse.footprint import Effect, Memory, PartBytes, Share
from floorit.analyse.ledger import Entry, Line
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Finding, FixAdvice
from floorit.events import Process, RecordReader
from floorit.fixes import asked
from floorit.record import wire
from floorit.report import build
from floorit.report.model import Missing, Report
from floorit.report.page import document, listing, samples, series
from floorit.runfile import RunFile
from floorit.stats import Estimate, seconds
from floorit.trial import attempt, guard, verdict
from floorit.trial import page as trial_page
from floorit.trial.trial import Pair
from floorit.tune import page as search_page
from floorit.tune import result as searched
from floorit.vitals import GpuSample, Sample

RECORDS = Path(__file__).parent / "records"
SOURCE = Path(page.__file__).parent
HOSTILE_FILE = "/x/<img src=x onerror=window.pwned=3>"
MOST_BYTES = 2_000_000


class Record(NamedTuple):
    """A record, unpacked and read."""

    folder: Path
    report: Report
    run: RunFile
    reader: RecordReader

    def html(self, **changes: Any) -> str:
        """Its page, with some of the report replaced."""
        return page.render(msgspec.structs.replace(self.report, **changes), self.run, self.reader, self.folder)


def _record(kind: str, folder: Path) -> Record:
    with tarfile.open(RECORDS / f"{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    run, reader = build.load(folder)
    return Record(folder, build.assemble(folder, run, reader), run, reader)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """With a kernel window, a loader without workers and epochs, on a GPU."""
    return _record("mix_data_compute", tmp_path_factory.mktemp("record"))


@pytest.fixture(scope="module")
def parsed(record: Record) -> Parsed:
    return Parsed(record.html())


# -- what it says --------------------------------------------------------------------------------------------------


def test_the_steps_add_up_to_the_ledger(record: Record, parsed: Parsed) -> None:
    steps, report = parsed.data["steps"], record.report
    assert report.run is not None
    assert (steps["count"], steps["width"], steps["warmup"]) == (report.run.steps, 1, report.run.warmup_steps)
    left_out = {step for first, last in steps["watched"] for step in range(first, last + 1)} | set(
        range(steps["warmup"])
    )
    counted = [step for step in range(steps["count"]) if step not in left_out]
    ledger = {entry.phase: entry.seconds for entry in report.ledger}
    for phase, column in zip(steps["phases"], steps["means"], strict=True):
        if ledger[phase] > 1e-4:
            assert sum(column[step] for step in counted) / len(counted) == pytest.approx(ledger[phase], rel=0.02), phase


def test_figures_are_those_of_the_report(record: Record, parsed: Parsed) -> None:
    report = record.report
    assert report.step is not None
    assert report.floor is not None
    assert report.gpu is not None
    for entry in report.ledger:
        if entry.share >= 0.001:
            assert seconds(entry.seconds) in parsed.words
            assert f"{entry.share:.1%}" in parsed.words
    assert seconds(report.step.mean) in parsed.words
    assert f"{report.floor.gap:.2f}" in parsed.words
    assert all(f"{idle.share:.1%}" in parsed.words for idle in report.gpu.idle)
    told = [*(finding.title for finding in report.findings), *(missing.reason for missing in report.missing)]
    assert all(text.replace("`", "") in parsed.words for text in told)
    titles = [value for _, name, value in parsed.attributes if name == "title"]
    low, high, n = seconds(report.step.seconds.low), seconds(report.step.seconds.high), report.step.seconds.n
    assert any(f"95 % interval {low} to {high}; n = {n}" in title for title in titles)


def test_the_first_fix_that_needs_no_hand_can_be_proven_as_it_is_written(record: Record, parsed: Parsed) -> None:
    commands = [value for tag, name, value in parsed.attributes if (tag, name) == ("button", "data-copy")]
    words = next(words for words in map(shlex.split, commands) if words[:2] == ["floorit", "try"])
    assert words[2] == "--fix"
    assert words[4:] == ["--", *record.report.program.command]
    provable = [fix for fix in record.report.findings[0].fixes if fix.speedup and not fix.by_hand]
    first = max(provable, key=lambda fix: fix.speedup.value)
    assert list(asked.parse([words[3]])) == [first.code]


def test_above_the_fold_stands_what_to_do_first(record: Record) -> None:
    def found(code: str, share: float, bound: float | None, fix: FixAdvice | None) -> Finding:
        at = Line(file=f"{code}.py", line=4, function="f", share=1.0)
        fixes = [fix] if fix is not None else []
        return Finding(code=code, title=f"{code} it is", share=share, bound=bound, evidence=[], where=[at], fixes=fixes)

    def gain(code: str, likely: float, **more: Any) -> FixAdvice:
        of = Estimate(value=likely, low=likely - 0.02, high=likely + 0.02, n=9)
        return FixAdvice(code=code, summary=f"{code} done", risk="exact", effort="a flag", speedup=of, **more)

    switch = found("debug-left-on", 0.1, None, gain("anomaly", 1.11, value=False))
    cost, other = found("loss-bound", 0.4, 1.7, None), found("logging-bound", 0.2, 1.3, gain("log-every", 1.2, value=3))
    by_hand = msgspec.structs.replace(other, fixes=[msgspec.structs.replace(other.fixes[0], by_hand=True)])
    shown = Parsed(record.html(findings=[cost, switch, by_hand]))
    first = re.sub(r"\s+", " ", shown.words.partition("The best first")[0])
    in_order = (
        *("Verdict loss-bound", "40%", "Also: debug-left-on it is, at debug-left-on.py:4", "1.20"),
        *(
            "Do this first, in the program: log-every done (log-every=3), at logging-bound.py:4",
            "against logging-bound",
        ),
        *("Measure again after it", "can be tried: anomaly done, predicted 1.11"),
    )
    places = [first.index(text) for text in in_order]
    assert places == sorted(places)
    commands = [value for tag, name, value in shown.attributes if (tag, name) == ("button", "data-copy")]
    assert commands[0].startswith("floorit run -- ")
    assert commands[1].startswith("floorit try --fix anomaly=off -- ")


def test_a_floor_without_data_only_says_that_fixes_may_gain_more(record: Record, parsed: Parsed) -> None:
    assert record.report.floor is not None
    only = msgspec.structs.replace(record.report.floor, rungs=record.report.floor.rungs[:2], gap=1.02)
    shown = Parsed(record.html(floor=only))
    said = "this is about data alone: fixes for anything else can gain more"
    assert said in shown.words
    assert said not in parsed.words  # whose floor is the GPU's own work
    assert "minor" in [value for _, name, value in shown.attributes if name == "class"]
    assert "can gain more than the gap" in parsed.words
    assert not re.search(r"[Gg]ap to the floor|its floor", shown.words)


def _row(process: Process, found: iterations.Iterations, step: int) -> list[float]:
    """Seconds of a step by phase, without what lies between it and the next."""
    chosen = (found.of_row == step) & (found.kind == iterations.TRAIN)
    return process.rows["seconds"][chosen].sum(axis=0).tolist()


def test_one_step_has_the_phases_that_its_row_has(record: Record, parsed: Parsed) -> None:
    course = parsed.data["course"]
    process = record.reader.run()[0]
    found = iterations.find(process)
    assert found is not None
    row = _row(process, found, course["step"])
    told = Counter[str]()
    for begin, end, phase, _ in course["lanes"]["host"]:
        told[phase] += max(min(end, course["seconds"]) - begin, 0)
    for phase, spent in zip(wire.PHASES, row, strict=True):
        assert told[phase] == pytest.approx(spent, abs=2e-5), phase


def test_in_one_step_the_gpu_is_busy_or_idle(parsed: Parsed) -> None:
    course = parsed.data["course"]
    busy, reached = 0.0, 0.0
    for begin, end, *_ in sorted(course["lanes"]["gpu"]):
        busy += max(end - max(begin, reached), 0)
        reached = max(reached, end)
    idle = sum(end - begin for begin, end, *_ in course["lanes"]["idle"])
    assert busy + idle == pytest.approx(course["end"], rel=1e-3)
    assert idle > course["end"] / 4  # it waits for data


def test_without_a_kernel_window_a_usual_step_is_read_from_the_log(record: Record, tmp_path: Path) -> None:
    process = record.reader.run()[0]
    window, process.window = process.window, None
    try:
        course = Parsed(record.html()).data["course"]
    finally:
        process.window = window
    found = iterations.find(process)
    assert found is not None
    assert not found.slowed[course["step"]]
    assert course["seconds"] == pytest.approx(float(np.median(found.after_warmup)), rel=0.02)
    row = _row(process, found, course["step"])
    told = Counter[str]()
    for begin, end, phase, _ in course["lanes"]["host"]:
        told[phase] += end - begin
    assert [told[phase] for phase in wire.PHASES] == pytest.approx(row, abs=1e-6)
    assert course["lanes"]["gpu"] == course["lanes"]["idle"] == []


def test_sections_of_what_was_not_measured_are_left_out(record: Record, parsed: Parsed) -> None:
    sections = {"floor", "gpu", "workers", "syncs", "settings", "parts", "memory"}
    assert {"floor", "gpu", "workers"} <= parsed.ids
    bare = Parsed(
        record.html(
            floor=None,
            gpu=None,
            workers=None,
            machine=None,
            syncs=[],
            settings=[],
            missing=[Missing(what="floor", reason="nobody looked for one")],
        )
    )
    assert not sections & bare.ids
    assert "nobody looked for one" in bare.words
    links = {value[1:] for _, name, value in bare.attributes if name == "href"}
    assert links <= bare.ids


def test_the_memory_ledger_is_on_it(record: Record) -> None:
    shares = [
        Share(what="activations", bytes=6 * 2**30, share=0.75),
        Share(what="optimizer state", bytes=2 * 2**30, share=0.25, dtypes={"float32": 2 * 2**30}),
    ]
    memory = Memory(
        where="gpu",
        peak=8 * 2**30,
        ledger=shares,
        activations=[PartBytes(name=HOSTILE, bytes=4 * 2**30), PartBytes(name="head", bytes=2 * 2**30)],
        steps=3,
        phase="backward",
        effects=[Effect(code="optimizer-8bit", value=None, bytes=-(2**30), how="it is said why")],
    )
    html = record.html(memory=memory)
    shown = Parsed(html)
    for words in ("6.00 GiB", "75.0%", "float32", "8.00 GiB in tensors", "-1.00 GiB", "7.00 GiB", "it is said why"):
        assert words in shown.words, words
    widths = [value for _, name, value in shown.attributes if name == "style" and "flex-grow:0.75" in value]
    assert widths
    assert HOSTILE not in html


def test_where_memory_ran_out_nothing_else_is_advised_first(tmp_path: Path) -> None:
    found = Parsed(_record("one_long_text", tmp_path).html())
    first, *_ = found.words.partition("What to do")
    assert "ran out of memory" in first
    assert "batch-size" in first
    assert "floorit try" not in first


def test_a_program_that_never_trained_has_a_page_too(record: Record, tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(record.run))
    run, reader = build.load(tmp_path)
    report = build.assemble(tmp_path, run, reader)
    found = Parsed(page.render(report, run, reader, tmp_path))
    assert report.summary in found.words
    assert [found.data[key] for key in ("steps", "course", "samples")] == [None, None, None]
    assert "fewer than two samples" in found.words


def test_settings_that_are_ignored_stand_by_themselves(record: Record) -> None:
    ignored = settings.Setting(name="num_workers", declared=24, declared_at="c.yaml:3", actual=2, ignored=True)
    words = Parsed(record.html(settings=[ignored])).words
    assert re.search(r"1\s+declared and not in force", words)
    assert "c.yaml:3" in words


# -- series ----------------------------------------------------------------------------------------------------------


def _process(spent: list[float]) -> Process:
    """Steps that take so long each, three quarters of it in the backward pass."""
    process, now, rows = Process(), 0, []
    for whole in spent:
        now += round(whole * 1e9)
        phases = [0] * len(wire.PHASES)
        phases[wire.FORWARD], phases[wire.BACKWARD] = round(whole * 0.25e9), round(whole * 0.75e9)
        rows.append(replay.Row(replay.BATCH, 1, 8, 1, 1, replay.GRAD_FORWARD, end=now, steps=1, spent=phases))
    process.add_rows(rows)
    return process


def test_many_steps_are_binned_and_none_that_stands_out_is_lost() -> None:
    spent = [0.001] * 25_000
    spent[17_777], spent[3] = 0.5, 0.004
    process = _process(spent)
    found = iterations.find(process, warmup=2)
    assert found is not None
    of = series.examine(process, found, [])
    assert (of.count, of.width, len(of.means[0])) == (25_000, 25, 1000)
    assert [(single.step, single.seconds, single.phase) for single in of.singles] == [
        (3, pytest.approx(0.004), "backward"),
        (17_777, pytest.approx(0.5), "backward"),
    ]
    hit = 17_777 // 25
    assert (of.least[hit], of.most[hit]) == (pytest.approx(0.001), pytest.approx(0.5))
    assert sum(map(sum, of.means)) * 25 == pytest.approx(sum(spent), rel=1e-4)


def test_the_spread_of_a_phase_lies_around_what_the_ledger_says() -> None:
    rng = np.random.default_rng(1)
    spent = rng.normal(0.1, 0.01, 400).tolist()
    process = _process(spent)
    found = iterations.find(process, warmup=10)
    assert found is not None
    entry = Entry(phase="backward", seconds=0.075, share=0.75, gpu_seconds=None, where=[])
    spread = series.examine(process, found, [entry]).spread["backward"]
    assert (spread.value, spread.n) == (0.075, 390)
    half = spread.high - spread.value
    assert half == pytest.approx(2.09 * np.std(0.75 * np.array(spent[10:])) / np.sqrt(390), rel=0.5)


def test_samples_are_means_of_neighbours_and_what_is_not_told_stays_open() -> None:
    def gpu(power: float | None) -> GpuSample:
        return GpuSample(uuid="a", power=power, power_limit=None, busy=None, memory=None, clock=None, slowed=[])

    of = [Sample(at=10.0 + i, cpu=(i % 2), memory_free=2**30, gpus=[gpu(None if i < 2 else 100.0)]) for i in range(801)]
    found = samples.examine(of, started=10.0)
    assert found is not None
    curves = {curve.name: curve.values for curve in found.curves}
    assert (found.width, found.at[:2]) == (3, [1.0, 4.0])
    assert curves["cores busy"][:2] == [pytest.approx(1 / 3, rel=1e-3), pytest.approx(2 / 3, rel=1e-3)]
    assert curves["GPU power"][0] == 100.0
    assert set(curves) == {"cores busy", "memory free", "GPU power"}
    assert samples.examine(of[:1], started=0.0) is None


# -- source ----------------------------------------------------------------------------------------------------------


def _with_line(record: Record, path: Path, line: int) -> Report:
    where = [Line(file=str(path), line=line, function="f", share=0.5)]
    entry = Entry(phase="forward", seconds=0.1, share=0.8, gpu_seconds=None, where=where)
    return msgspec.structs.replace(record.report, ledger=[entry], workers=None)


def test_a_hot_line_stands_among_its_neighbours(record: Record, tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("".join(f"line_{n} = {n}\n" for n in range(1, 30)))
    [file] = listing.listing(_with_line(record, source, 10), started=4e9)
    assert [row.number for row in file.rows] == list(range(7, 14))
    assert [(row.text, row.hot[0].share) for row in file.rows if row.hot] == [("line_10 = 10", 0.4)]
    assert not file.is_newer
    [file] = listing.listing(_with_line(record, source, 10), started=1.0)
    assert file.is_newer


def test_lines_that_block_are_marked_by_the_time_that_they_block(record: Record, tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    source.write_text("a\nb\n")
    entry = Entry(phase="sync", seconds=0.1, share=0.8, gpu_seconds=None, where=[])
    syncs = [
        SyncPoint(file=str(source), line=line, function="f", op="item", per_step=1, seconds=spent)
        for line, spent in ((1, 0.075), (2, 0.025))
    ]
    report = msgspec.structs.replace(record.report, ledger=[entry], workers=None, syncs=syncs)
    [file] = listing.listing(report, started=0.0)
    assert [[(hot.of, hot.share) for hot in row.hot] for row in file.rows] == [
        [("sync", pytest.approx(0.6))],
        [("sync", pytest.approx(0.2))],
    ]


def test_of_what_a_record_names_only_python_is_read(record: Record, tmp_path: Path) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("do not show\n")
    [file] = listing.listing(_with_line(record, secret, 1), started=0.0)
    assert (file.reason, [row.text for row in file.rows]) == ("it is not a Python file", [""])
    [file] = listing.listing(_with_line(record, tmp_path / "gone.py", 1), started=0.0)
    assert file.reason == "No such file or directory"


# -- what it is ------------------------------------------------------------------------------------------------------


def _hostile(record: Record) -> str:
    """A page in which nothing can be trusted."""
    report = record.report
    where = [Line(file=f"/tmp/{HOSTILE}.py", line=1, function=HOSTILE, share=0.9, inside=HOSTILE)]
    finding = msgspec.structs.replace(report.findings[0], title=HOSTILE, evidence=[HOSTILE], where=where)
    entry = msgspec.structs.replace(report.ledger[0], where=where)
    process = record.reader.run()[0]
    spans = process.spans
    process.spans = [
        msgspec.structs.replace(s, place=msgspec.structs.replace(s.place, file=HOSTILE_FILE) if s.place else None)
        for s in spans
    ]
    try:
        return record.html(
            findings=[finding, *report.findings[1:]],
            ledger=[entry, *report.ledger[1:]],
            program=msgspec.structs.replace(report.program, command=["python", f"{HOSTILE}.py"]),
            missing=[Missing(what=HOSTILE, reason=HOSTILE)],
        )
    finally:
        process.spans = spans


def test_no_string_can_leave_its_place(record: Record, parsed: Parsed) -> None:
    hostile = Parsed(_hostile(record))
    assert len(hostile.scripts) == len(parsed.scripts) == 3
    assert hostile.scripts[1:] == parsed.scripts[1:]
    assert not [tag for tag, name, _ in hostile.attributes if name.startswith("on") or tag == "img"]
    assert HOSTILE in hostile.words
    places = [at for lane in hostile.data["course"]["lanes"].values() for *_, at in lane]
    assert any(at.startswith(HOSTILE_FILE) for at in places)
    assert "<" not in hostile.scripts[0]


def test_data_survives_its_escaping() -> None:
    values = {"a": HOSTILE, "b": [1.5, None, "<!--"]}
    written = str(document.in_script(values))
    assert json.loads(written) == values
    assert not set("<>&\u2028\u2029") & set(written)


def test_what_is_typed_is_shown_as_code(record: Record) -> None:
    told = 'write `a > b` and `<img src=x>`, not "`" alone'
    finding = msgspec.structs.replace(record.report.findings[0], title="`loss.item()` in every step", evidence=[told])
    source = msgspec.structs.replace(record.report.program, command=["python", "-c", "`echo x`"])
    html = record.html(findings=[finding, *record.report.findings[1:]], program=source)
    assert "<code>loss.item()</code> in every step" in html
    assert "write <code>a &gt; b</code> and <code>&lt;img src=x&gt;</code>, not" in html
    read = Parsed(html)
    assert "<img src=x>" in read.words  # as a text
    assert not [tag for tag, _, _ in read.attributes if tag == "img"]
    assert read.scripts[1:] == Parsed(record.html()).scripts[1:]  # which have backticks of their own


def test_nothing_may_be_fetched(parsed: Parsed) -> None:
    [policy] = [
        value for tag, name, value in parsed.attributes if (tag, name) == ("meta", "content") and "src" in value
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in parsed.scripts[1:]]
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert not {"connect-src", "frame-src", "font-src", "object-src"} & set(rules)
    assert all(value.startswith("#") for _, name, value in parsed.attributes if name in ("href", "src", "action"))


def test_a_page_is_small_and_has_its_landmarks(record: Record, parsed: Parsed) -> None:
    assert len(record.html().encode()) < MOST_BYTES
    assert parsed.headings.count("h1") == 1
    levels = [int(heading[1]) for heading in parsed.headings]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    tags = {tag for tag, _, _ in parsed.attributes}
    assert {"main", "nav", "header", "section"} <= tags
    for chart in ("chart-steps", "chart-course", "chart-samples"):
        assert chart in parsed.ids
    assert parsed.words.count("as a table") == 3  # what the charts show, in words


def test_the_chart_library_is_the_one_that_is_named() -> None:
    told = re.search(r"sha256 \| `(\w{64})`", (SOURCE / "echarts" / "README.md").read_text())
    assert told is not None
    assert hashlib.sha256((SOURCE / "echarts" / "echarts.min.js").read_bytes()).hexdigest() == told[1]


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_contrast_in_both_schemes() -> None:
    """WCAG AA: 4.5 to 1."""
    style = (SOURCE / "page.css").read_text()
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in style.split("@media (prefers")[:2])
    for scheme in (light, dark):
        pairs = [(text, back) for text in ("text", "quiet", "accent", "warn") for back in ("back", "raised")]
        for text, back in [*pairs, ("on-accent", "accent"), ("text", "hot"), ("quiet", "hot")]:
            one, other = sorted([_luminance(scheme[text]), _luminance(scheme[back])])
            assert (other + 0.05) / (one + 0.05) >= 4.5, (text, back)


# -- commands --------------------------------------------------------------------------------------------------------


def test_a_run_leaves_a_page_behind(runs: Runs) -> None:
    truth = next(truth for truth in truths() if truth.name == "slow_dataset")
    ran = runs.recorded(truth)
    assert ran.report is not None
    found = Parsed((runs.folder / f"{truth.name}-recorded" / "run" / page.NAME).read_text())
    assert found.data["steps"]["count"] == ran.report["run"]["steps"]
    assert ran.report["findings"][0]["title"] in found.words


def test_the_last_line_of_a_run_says_where_it_is(tmp_path: Path) -> None:
    ended = execute([FLOORIT, "run", "--out", "out", "--", PYTHON, "-c", "pass"], tmp_path)
    assert ended.stderr.decode().splitlines()[-1].endswith(": out/report.html")
    assert "No Python process that imports torch was seen" in Parsed((tmp_path / "out" / page.NAME).read_text()).words


def test_report_draws_it_again(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--html", str(record.folder)]) == 0
    told = capsys.readouterr().out.strip()
    assert Path(told).read_text() == record.html()


def test_a_file_may_be_named_for_it_before_the_run_or_after(
    record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "named"  # which need not end in .html where the run is named, too
    for words in (["--html", str(file), str(record.folder)], [str(record.folder), "--html", str(file)]):
        assert cli.main(["report", *words]) == 0
        assert Path(capsys.readouterr().out.strip()).resolve() == file
        assert file.read_text() == record.html()
        file.unlink()


def test_without_a_run_only_what_is_called_a_page_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for word in ("page.html", "run1"):
        assert cli.main(["report", "--html", word]) == 66  # there is no run to be drawn; nor is one called run1
        assert not (tmp_path / word).exists()
    assert commandline.split(["report", "--html", "page.html"])[0] == ["report", "--html", "page.html"]
    assert commandline.split(["report", "--html", "run1"])[0] == ["report", "--html=", "run1"]


def test_a_page_that_cannot_be_written_is_one_line(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = record.folder / f"{page.NAME}.part"
    blocked.mkdir()
    try:
        assert cli.main(["report", "--html", str(record.folder)]) == 73
    finally:
        blocked.rmdir()
    assert capsys.readouterr().err.startswith("floorit: the page cannot be written: Is a directory")


# -- a try and a search ----------------------------------------------------------------------------------------------


def _outcome(name: str, gain: float, word: verdict.Word) -> verdict.Outcome:
    return verdict.Outcome(
        name=name,
        fixes=[verdict.Fixed(code="workers", value=8)],
        command=["train.py"],
        risk="order",
        verdict=word,
        reason=f"{name} is {word}",
        speedup=Estimate(value=gain, low=gain - 0.1, high=gain + 0.1, n=2),
        noise=0.03,
        predicted=Estimate(value=1.7, low=1.2, high=1.9, n=40),
        not_predicted=None,
        parity=guard.Parity(status="same", reason="losses are the same"),
        pairs=[Pair(a=3.0, b=2.0, order="ab", steps=20), Pair(a=3.0, b=1.5, order="ba", steps=20)],
        memory=verdict.Memory(a=None, b=None),
        startup=verdict.Startup(a=None, b=None, b_first=None, pays_after=None),
    )


def _tried(folder: Path, *outcomes: verdict.Outcome) -> attempt.Result:
    of = {"steps": 20, "trials": 9, "seconds": 61.0, "interrupted": False}
    return attempt.Result(command=["train.py"], outcomes=list(outcomes), folder=str(folder), **of)


def test_the_page_says_what_is_to_be_set_in_a_file(tmp_path: Path) -> None:
    """The program's own command alone would train as before."""
    best = msgspec.structs.replace(_outcome("hyp.yaml:mosaic=0", 1.75, "faster"), entries=["hyp.yaml:mosaic=0"])
    found = Parsed(trial_page.write(_tried(tmp_path, best), tmp_path).read_text())
    assert "et it in the file first: hyp.yaml:mosaic=0" in found.words


def test_a_try_shows_measured_beside_predicted(tmp_path: Path) -> None:
    result = _tried(tmp_path, _outcome("slow", 0.9, "not faster"), _outcome(f"fast {HOSTILE}", 1.75, "faster"))
    found = Parsed(trial_page.write(result, tmp_path).read_text())
    slow, fast = found.data["changes"]
    assert (slow["verdict"], fast["verdict"]) == ("not faster", "faster")
    assert fast["speedup"] == {"value": 1.75, "low": 1.65, "high": 1.85, "n": 2}
    assert fast["predicted"]["value"] == 1.7
    assert fast["ratios"] == [1.5, 2.0]
    assert fast["claimed"] == 0.03
    assert "1.75 times as fast" in re.sub(r"\s+", " ", found.words)
    assert len(found.scripts) == 3
    commands = [value for tag, name, value in found.attributes if (tag, name) == ("button", "data-copy")]
    assert commands == ["floorit run --fix workers=8 -- train.py"]


def test_a_search_that_proved_nothing_says_so(tmp_path: Path) -> None:
    stage = searched.Stage(on=[], outcomes=[_outcome("workers=8", 1.0, "unclear")], seconds=60.0)
    result = searched.Result(
        command=["train.py"],
        goal="speed",
        stages=[stage],
        stack=[],
        proof=None,
        left=None,
        job=None,
        in_source=[],
        stopped="nothing else should gain",
        interrupted=False,
        seconds=60.0,
        folder=str(tmp_path),
    )
    found = Parsed(search_page.write(result, tmp_path).read_text())
    assert "Nothing was proven faster." in found.words
    assert "nothing else should gain" in found.words
    assert [change["name"] for change in found.data["changes"]] == ["workers=8"]


def test_a_search_for_less_memory_leads_with_it(tmp_path: Path) -> None:
    saving = {"memory": verdict.Memory(a=4 << 30, b=3 << 30), "noise": 0.01}
    proof = msgspec.structs.replace(_outcome("recompute=on", 1.06, "unclear"), **saving)
    result = searched.Result(
        command=["train.py"],
        goal="memory",
        stages=[searched.Stage(on=[], outcomes=[proof], kept="recompute=on", seconds=60.0)],
        stack=proof.fixes,
        proof=proof,
        left=None,
        job=None,
        in_source=[],
        stopped="nothing else is known to take less",
        interrupted=False,
        seconds=60.0,
        folder=str(tmp_path),
    )
    words = re.sub(r"\s+", " ", Parsed(search_page.write(result, tmp_path).read_text()).words)
    assert "3.00 GiB of memory instead of 4.00 GiB." in words
    assert "less memory, kept" in words


# -- in a browser ----------------------------------------------------------------------------------------------------

needs_chromium = pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def opened(record: Record, chromium: browser.Browser) -> browser.Browser:
    """The page, on a wide screen."""
    path = record.folder / "opened.html"
    path.write_text(record.html())
    chromium.open(path)
    return chromium


def _zoom(of: browser.Browser, chart: str) -> tuple[float, float]:
    option = of.run(
        f"JSON.stringify(echarts.getInstanceByDom(document.getElementById('{chart}')).getOption().dataZoom[0])"
    )
    zoom = json.loads(option)
    return zoom["start"], zoom["end"]


@pytest.mark.browser
@needs_chromium
def test_it_opens_without_an_error_and_without_a_request(opened: browser.Browser) -> None:
    assert opened.errors == []
    assert [url.partition(":")[0] for url in opened.requests] == ["file"]


@pytest.mark.browser
@needs_chromium
def test_charts_draw_their_data(opened: browser.Browser, parsed: Parsed) -> None:
    def drawn(chart: str) -> dict[str, list[Any]]:
        series_of = f"echarts.getInstanceByDom(document.getElementById('{chart}')).getOption().series"
        return json.loads(opened.run(f"JSON.stringify(Object.fromEntries({series_of}.map(s => [s.id, s.data])))"))

    data = parsed.data
    steps = drawn("chart-steps")
    assert {phase: steps[phase] for phase in data["steps"]["phases"]} == dict(
        zip(data["steps"]["phases"], data["steps"]["means"], strict=True)
    )
    bars = [bar["value"] for bar in drawn("chart-course")["bars"]]
    assert [value[1:] for value in bars] == [bar[:2] for lane in data["course"]["lanes"].values() for bar in lane]
    curves = drawn("chart-samples")
    for curve in data["samples"]["curves"]:
        assert [value for _, value in curves[curve["name"]]] == curve["values"]
    assert opened.run(
        "[...document.querySelectorAll('.chart')].every(c => c.querySelectorAll('path, rect').length > 5)"
    )


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("chart", ["chart-steps", "chart-course", "chart-samples"])
def test_buttons_zoom(opened: browser.Browser, chart: str) -> None:
    def press(how: str) -> tuple[float, float]:
        opened.run(f"document.querySelector('[data-for={chart}] [data-zoom={how}]').click()")
        return _zoom(opened, chart)

    assert _zoom(opened, chart) == (0, 100)
    assert press("in") == pytest.approx((25, 75))
    assert press("right") == pytest.approx((50, 100))
    assert press("reset") == (0, 100)


@pytest.mark.browser
@needs_chromium
def test_hostile_strings_are_not_run(record: Record, opened: browser.Browser, chromium: browser.Browser) -> None:
    path = record.folder / "hostile.html"
    path.write_text(_hostile(record))
    chromium.open(path)
    show = (
        "const chart = echarts.getInstanceByDom(document.getElementById('chart-course'));"
        "chart.getOption().series[0].data.forEach((_, i) =>"
        " i % 9 || chart.dispatchAction({type: 'showTip', seriesIndex: 0, dataIndex: i}))"
    )
    chromium.run(show)
    assert chromium.run("typeof window.pwned") == "undefined"
    assert chromium.errors == []
    assert chromium.run("document.querySelectorAll('img').length") == 0


@pytest.mark.browser
@needs_chromium
def test_changes_are_drawn(chromium: browser.Browser, tmp_path: Path) -> None:
    chromium.open(trial_page.write(_tried(tmp_path, _outcome("workers=8", 1.75, "faster")), tmp_path))
    assert chromium.errors == []
    assert chromium.run("document.querySelectorAll('#chart-changes path').length") > 5


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_in_both_schemes(record: Record, opened: browser.Browser, dark: bool) -> None:
    opened.open(record.folder / "opened.html", width=390, height=844, dark=dark)
    assert opened.errors == []
    assert opened.run("document.documentElement.scrollWidth") == 390
    back = opened.run("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(18, 22, 27)" if dark else "rgb(255, 255, 255)")


@pytest.mark.browser
@needs_chromium
def test_no_place_is_cut_on_a_phone(record: Record, opened: browser.Browser) -> None:
    opened.open(record.folder / "opened.html", width=390, height=844)
    opened.run("document.querySelectorAll('details').forEach(hidden => { hidden.open = true; })")
    rights = opened.run("[...document.querySelectorAll('code.at')].map(place => place.getBoundingClientRect().right)")
    assert len(rights) > 20
    assert max(rights) <= 390
