"""What is said in another language: all of it, with the same figures, and nothing that a program reads."""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import polib
import pytest
from conftest import Runs, truths
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from floorit import cli, language, live, runfile
from floorit.errors import UsageError
from floorit.events import read_record
from floorit.language.catalogue import Catalogue, Said, english
from floorit.language.drawn import Names, drawn
from floorit.language.markup import translated
from floorit.report import build, markdown, page, terminal
from floorit.report.model import Report

RECORDS = Path(__file__).parent / "records"
SOURCE = Path(language.__file__).parents[1]
LOCALE = Path(language.__file__).parent / "locale"
OTHERS = tuple(code for code in language.CODES if code != language.ENGLISH)
# One of each kind of finding that takes most words: a switch left on, memory, ranks, data, workers, evaluation.
FEW = ("anomaly_on", "averages_gradients", "mix_data_compute", "one_long_text")
ALL = tuple(sorted(path.name.partition(".")[0] for path in RECORDS.glob("*.tar.xz")))
FIGURE = re.compile(r"\d[\d.,]*")
# Words that are the same in every language: codes, values, names of kernels' settings, and of the scripts' own parts.
VERBATIM = frozenset(
    "accumulate accumulation amp area augmented autocast batch bytes cache checkpoint comm compile cubic eval false"
    " filtered forward fused gpu healthy high highest item launch launcher linear main nearest nonzero note off"
    " oversubscribed persistent pin prefetch rate recompute save shuffle sync train true"
    " True False unattributed watts workers Workers".split()
)


@pytest.fixture(autouse=True)
def _english_again() -> Iterator[None]:
    yield
    language.use(language.ENGLISH)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a packed record."""
    root = tmp_path_factory.mktemp("records")

    def unpack(name: str) -> Path:
        if not (root / name).exists():
            with tarfile.open(RECORDS / f"{name}.tar.xz") as archive:
                archive.extractall(root / name, filter="data")
        return root / name

    return unpack


def _page(report: Report, folder: Path) -> str:
    return page.render(report, runfile.load(folder), read_record(folder / runfile.RECORD), folder)


def _in(code: str, draw: Callable[[], str]) -> str:
    language.use(code)
    try:
        return draw()
    finally:
        language.use(language.ENGLISH)


# -- completeness


def _not_said(monkeypatch: pytest.MonkeyPatch, draw: Callable[[], object]) -> list[str]:
    """Texts that something draws and that are left in English, or have English words left."""
    left: dict[str, set[str]] = {}
    say = Catalogue.say

    def spy(self: Catalogue, text: str) -> Said:
        made = say(self, text)
        left[text] = _words(made.text) if made.left else set()
        return made

    monkeypatch.setattr(Catalogue, "say", spy)
    language.use("zh-TW")
    draw()
    without_marks = {re.sub(r"[\ue000-\uf8ff]", "", text).strip() for text, words in left.items() if not words}
    return [
        text
        for text, words in left.items()
        if words - VERBATIM and re.sub(r"[\ue000-\uf8ff]", "", text).strip() not in without_marks and "->" not in text
    ]


def _words(text: str) -> set[str]:
    plain = re.sub(r"`[^`]*`|\S+:\d+  \S.*$|[^\x00-\x7f]", " ", text)
    return {word for token in plain.split() if english(word := token.strip("()[]*,;:.")) and not _is_name(word)}


def _is_name(word: str) -> bool:
    return word in {"epoch", "worker", "kernel", "rank", "collate", "Tensor", "Core"}  # which people write in English


def _assert_all_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = build.build(folder)
    for draw in (terminal.text, markdown.render, lambda report: _page(report, folder)):
        assert _not_said(monkeypatch, lambda draw=draw: draw(report)) == []
        monkeypatch.undo()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FEW else pytest.mark.acceptance) for name in ALL]
)
def test_all_that_is_drawn_of_a_record_is_translated(
    name: str, unpacked: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _assert_all_is_said(unpacked(name), monkeypatch)


# Programs that take other words than the records: on a CPU, of two ranks, with settings ignored, that did not train.
SCRIPTS = (
    *("all_pairs", "anomaly", "crowded_threads", "ddp", "exits_3", "framework", "inference", "lbfgs", "logs_much"),
    *("restarts", "slow_dataset", "validate", "workers_never_read"),
)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", SCRIPTS)
def test_all_that_is_drawn_of_a_run_here_is_translated(name: str, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.recorded(next(truth for truth in truths() if truth.name == name))
    _assert_all_is_said(runs.folder / f"{name}-recorded" / "run", monkeypatch)


# Where sentences are made for people; all else has names, patterns and code.
SPEAKING = ("analyse", "compare", "diagnose", "fixes", "report", "trial", "tune", "watch")
SILENT = (
    *("report/trace.py", "report/page/document.py", "tune/tuning.py", "trial/configs.py"),
    *("analyse/memory.py", "analyse/trace.py", "analyse/tracks.py"),  # what others say, and what is not shown
)
# Parts of sentences, which are entries only as a whole; what begins with a comma or a space is one, too.
PARTS = {
    *("Where a {0}'s time went, in ms", "where a {0}'s time went", "leaves it open", "before the last change"),
    *("{0}: B is {1}x as fast {2}", "unclear: B is {0}x as fast {1}; one run of each cannot tell that from 1"),
    *("{0}; if it took no time: {1}", "a run takes {0}; {1} against it as it is:", "takes {0}; nothing is edited"),
    "{0}, without waiting for data a step would be {1}x as fast{2}",
    *("without it, and without what waits for it,", "a step would take {0} instead of {1}"),
    "without it, and without what else batches cost (pauses between epochs, evaluation, cores),",
    *("both together have cores for about", "beside the training about", "in the dataset"),
    *("in the floor the GPU never waits: its own work stays in it", "the losses differ from backward pass {0} on, {1}"),
}
MAY_BE_MISSING = 0.02  # of the sentences: a text may be a few days older than what is said for it


def _sentences() -> Iterator[tuple[str, str]]:
    """Every text of several words in the source, with the place; what is put into it is a slot."""
    for part in SPEAKING:
        for path in sorted((SOURCE / part).rglob("*.py")):
            name = str(path.relative_to(SOURCE))
            if name not in SILENT:
                found = _texts(ast.parse(path.read_text()))
                yield from ((f"{name}:{node.lineno}", text) for node, text in found if text[:1] not in " ,;:")


def _texts(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node, _with_slots(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents | inside:
            yield node, node.value


def _with_slots(text: ast.JoinedStr) -> str:
    parts = iter("{" + str(at) + "}" for at in range(99))
    return "".join(str(v.value) if isinstance(v, ast.Constant) else next(parts) for v in text.values)


def _is_known(catalogue: Catalogue, text: str) -> bool:
    """With each slot filled with a figure or with nothing."""
    slots = sorted(set(re.findall(r"\{(\d+)\}", text)))
    for fillings in product(("7", ""), repeat=min(len(slots), 4)):
        values = {**dict.fromkeys(slots, "7"), **dict(zip(reversed(slots), fillings, strict=False))}
        if not catalogue.say(re.sub(r"\{(\d+)\}", lambda slot, of=values: of[slot[1]], text)).left:
            return True
    return False


def test_nearly_every_sentence_in_the_source_is_known() -> None:
    catalogue = language.sentences("zh-TW")
    sentences = [(place, text) for place, text in _sentences() if english(text) > 2 and text not in PARTS]
    unknown = [(place, text) for place, text in sentences if not _is_known(catalogue, text)]
    assert len(sentences) > 300
    assert len(unknown) <= MAY_BE_MISSING * len(sentences), unknown


@pytest.mark.parametrize("path", sorted(LOCALE.glob("*.po")), ids=lambda path: path.stem)
def test_a_translation_has_the_slots_of_its_sentence(path: Path) -> None:
    for entry in polib.pofile(str(path)):
        source = [int(number) for number in re.findall(r"\{(\d)\}", entry.msgid)]
        target = [int(number) for number in re.findall(r"\{(\d)(?::raw)?\}", entry.msgstr)]
        assert source == list(range(len(source))), entry.msgid
        assert sorted(target) == source, entry.msgid
        assert entry.msgstr, entry.msgid
        figures = [_figures(re.sub(r"\{\d(:raw)?\}", "", text)) for text in (entry.msgid, entry.msgstr)]
        assert figures[0] == figures[1], entry.msgid


# Of a shape that figures alone do not show: a code or a title comes first, or a time is one step's.
UNLIKE_FIGURES = {"{0}: {1} of a step", "{0} in {1}: {2}", "step {0}"}


@pytest.mark.parametrize("code", OTHERS)
def test_every_sentence_is_found_by_its_own_shape(code: str) -> None:
    """No other entry takes a text away from it, or divides it in another way."""
    values = [f"7{at} ms" for at in range(10)]
    for entry in polib.pofile(str(LOCALE / f"{code.replace('-', '_')}.po")):
        text = re.sub(r"\{(\d)\}", lambda slot: values[int(slot[1])], entry.msgid)
        if english(text) and entry.msgid not in UNLIKE_FIGURES:
            expected = re.sub(r"\{(\d)(:raw)?\}", lambda slot: values[int(slot[1])], entry.msgstr)
            said = language.sentences(code).say(text).text
            assert said.replace(" ", "") == expected.replace(" ", ""), entry.msgid


def test_sentences_that_are_joined_are_divided_where_they_were() -> None:
    """Any two, joined as reports join theirs, are said as each by itself; but for a few that read alike either way."""
    catalogue, draw = language.sentences("zh-TW"), random.Random(1)
    entries = [entry.msgid for entry in polib.pofile(str(LOCALE / "zh_TW.po"))]
    whole = [text for text in entries if english(text) > 1 and not text.endswith((".", ":", "?"))]
    joints = [(" · ", " · "), ("; ", "\uff1b")] * 150
    differ = []
    for joint, wide in joints:
        a, b = draw.choice(whole), draw.choice(whole)
        first, second = (re.sub(r"\{(\d)\}", rf"{at}\1 ms", text) for at, text in ((7, a), (8, b)))
        said = catalogue.say(first + joint + second).text
        if said.replace(" ", "") != (catalogue.say(first).text + wide + catalogue.say(second).text).replace(" ", ""):
            differ.append((a, b, said))
    assert len(differ) <= 0.02 * len(joints), differ


def test_every_language_has_the_same_sentences() -> None:
    ids = [[entry.msgid for entry in polib.pofile(str(path))] for path in sorted(LOCALE.glob("*.po"))]
    assert len(ids) == len(OTHERS)
    assert all(len(set(of_one)) == len(of_one) for of_one in ids)
    assert all(of_one == ids[0] for of_one in ids)


@pytest.mark.parametrize(
    ("code", "foreign"),
    [
        ("zh_TW", "内存|程序|线程|数据|缓存|默认|优化|文件|设置"),
        ("zh_CN", "記|憶|體|執|緒|資料|檔|預設|優|佔|迴圈|函式"),
    ],
)
def test_each_is_written_in_its_own_words(code: str, foreign: str) -> None:
    said = " ".join(entry.msgstr for entry in polib.pofile(str(LOCALE / f"{code}.po")))
    assert not re.findall(foreign, said)


# -- what stays the same


@pytest.mark.parametrize("name", FEW[:2])
def test_figures_are_the_same(name: str, unpacked: Callable[[str], Path]) -> None:
    report = build.build(unpacked(name))
    for draw in (markdown.render, lambda report: terminal.text(report, 2000)):
        plain = draw(report).splitlines()
        for code in OTHERS:
            lines = _in(code, lambda draw=draw: draw(report)).splitlines()
            assert len(lines) == len(plain)
            for line, original in zip(lines, plain, strict=True):
                assert _figures(line) == _figures(original), (line, original)


def _figures(line: str) -> list[str]:
    return sorted(figure.rstrip(".,") for figure in FIGURE.findall(line))


@pytest.mark.parametrize("code", OTHERS)
def test_report_json_is_the_same(
    code: str, unpacked: Callable[[str], Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def printed(*words: str) -> bytes:
        assert cli.main([*words]) in (0, 1)
        return capfdbinary.readouterr().out

    folder = str(unpacked("one_long_text"))
    assert printed("report", "--json", "--lang", code, folder) == printed("report", "--json", folder)
    script = str(Path(__file__).parent / "scripts" / "slow_dataset.py")
    assert printed("scan", "--json", "--lang", code, script) == printed("scan", "--json", script)
    assert printed("scan", "--lang", code, script) != printed("scan", script)


@pytest.mark.parametrize("code", OTHERS)
def test_a_page_has_the_same_elements_and_code(code: str, unpacked: Callable[[str], Path]) -> None:
    folder = unpacked("anomaly_on")
    report = build.build(folder)
    plain, other = (_Outline(_in(of, lambda: _page(report, folder))) for of in (language.ENGLISH, code))
    assert other.language == code
    assert other.tags == plain.tags
    assert other.code == plain.code
    assert other.scripts[1:] == plain.scripts[1:]  # unchanged, so the page's policy lets them run
    said = json.loads(other.scripts[0])["words"]
    assert said["Copied"] != "Copied"
    assert said["forward pass"] not in ("", "forward pass")
    assert json.loads(plain.scripts[0])["words"] == {}
    assert {**json.loads(other.scripts[0]), "words": {}} == json.loads(plain.scripts[0])


class _Outline(HTMLParser):
    """Elements without the attributes that are read to people; code and scripts with their text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[Any] = []
        self.code: list[str] = []
        self.scripts: list[str] = []
        self.language: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        kept = [(name, value) for name, value in attributes if name not in ("title", "aria-label", "lang")]
        self.tags.append((tag, sorted(kept, key=str)))
        self.language = dict(attributes).get("lang", self.language) if tag == "html" else self.language

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        last = self.tags[-1][0] if self.tags else ""
        if last in ("code", "wbr"):
            self.code.append(data)
        if last == "script":
            self.scripts.append(data)


def test_a_terminal_of_80_columns_is_not_overrun(unpacked: Callable[[str], Path]) -> None:
    report = build.build(unpacked("one_long_text"))
    for code in OTHERS:
        lines = _in(code, lambda: terminal.text(report, 80)).splitlines()
        assert max(map(cell_len, lines)) <= 80
        assert any(cell_len(line) > len(line) for line in lines)  # characters of two columns


# -- how a text is found


SMALL = Catalogue(
    {
        "{0} of the step": "佔每步的 {0}",
        "{0} took {1}": "{1}花在{0}",
        "the loader": "載入器",
        "rewrite {0}": "重寫 {0:raw}",
        "{0} steps": "{0} 步",
        "steps of {0}": "{0}的步",
        "{0}, {1}": "{0},{1}",
        "{0}: {1}": "{0}:{1}",
        "loss": "損失",
    }
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The loader.", "載入器。"),
        ("  the loader", "  載入器"),
        ("the loader took 5 ms", "5 ms 花在載入器"),  # other order, and a space beside what is not Chinese
        ("12% of the step, the loader took 5 ms", "佔每步的 12%,5 ms 花在載入器"),
        ("the loader, 3 steps", "載入器,3 步"),  # not: {0} steps, of "the loader, 3"
        ("rewrite loss", "重寫 loss"),  # a name of the program
        ("amp: 50% of the step", "amp:佔每步的 50%"),
        ("nothing of this is known", "nothing of this is known"),
        ("3 steps and much else that nobody knows", "3 steps and much else that nobody knows"),
        ("train.py:30  loss", "train.py:30  loss"),
        ("`the loader` took 5 ms", "5 ms 花在 `the loader`"),
        ("12.5, 13", "12.5, 13"),
        ("", ""),
    ],
)
def test_a_text_is_found_by_its_shape(text: str, said: str) -> None:
    assert SMALL.say(text).text == said


def test_a_text_that_nobody_wrote_for_it_takes_no_time_and_no_depth() -> None:
    text = "; ".join(f"the loader, or {at}: what a step of it took" for at in range(2000))
    assert language.sentences("zh-TW").say(text).text == text


def test_a_page_leaves_code_and_names_alone() -> None:
    language.use("zh-TW")
    html = (
        '<html lang="en"><p title="forward pass">loss <code>loss</code></p>'
        '<td translate="no">loss</td><b>&lt;i></b></html>'
    )
    assert translated(html, "zh-TW") == (
        '<html lang="zh-TW"><p title="前向傳播">損失計算 <code>loss</code></p>'
        '<td translate="no">loss</td><b>&lt;i&gt;</b></html>'
    )


def test_a_terminal_leaves_names_alone_and_keeps_styles() -> None:
    table = Table()
    table.add_column("phase")
    table.add_row(language.Code("loss"))
    table.add_row(Names("loss"))
    table.add_row(Text("loss"))
    language.use("zh-TW")
    shown = drawn(table)
    assert isinstance(shown, Table)
    assert shown.columns[0].header == "階段"
    assert [str(cell) for cell in shown.columns[0].cells] == ["loss", "loss", "損失計算"]
    styled = drawn(Text.assemble(("input-bound", "bold"), ": ", "the training loop waits for data"))
    assert isinstance(styled, Text)
    assert styled.plain == "input-bound:訓練迴圈在等資料".replace(":", "\uff1a")
    assert [(styled.plain[span.start : span.end], span.style) for span in styled.spans] == [("input-bound", "bold")]


def test_a_row_is_cut_by_columns() -> None:
    assert live._cut("abc", 10) == "abc"
    assert cell_len(live._cut("訓練迴圈在等資料", 7)) <= 7


# -- how it is asked for


@pytest.mark.parametrize("text", ["zh-TW", "zh_TW", "zh-tw"])
def test_a_language_is_known_however_it_is_spelled(text: str) -> None:
    assert language.named(text) == "zh-TW"


def test_an_unknown_language_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError):
        language.named("fr")
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", "--lang", "fr", str(tmp_path)])
    assert ended.value.code == 2
    assert "there is no language 'fr'; there are en, zh-TW, zh-CN" in capsys.readouterr().err
    monkeypatch.setenv(language.VARIABLE, "fr")
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "there is no language 'fr'" in capsys.readouterr().err


def test_the_environment_chooses_and_the_command_line_comes_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(language.VARIABLE, "zh-TW")
    shutil.rmtree(tmp_path)
    for words, expected in (
        ([], "中沒有 floorit"),
        (["--lang", "zh-CN"], "中没有 floorit"),
        (["--lang", "en"], "holds no"),
    ):
        assert cli.main(["report", *words, str(tmp_path)]) == 66
        assert expected in capsys.readouterr().err
