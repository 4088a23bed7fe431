"""What was found, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any, TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from floorit.language.drawn import SOURCE, drawn
from floorit.scan.finding import Finding, Result
from floorit.scan.heat import Place
from floorit.scan.rule import Rule

FORMAT = 1  # of the JSON


def show(what: Text, stream: TextIO) -> None:
    """Write it as it is: a line that is long is for the reader's terminal to break."""
    Console(file=stream, highlight=False, emoji=False).print(drawn(what), soft_wrap=True, end="")


def render(result: Result) -> Text:
    """For the terminal: each finding with its line; what a code costs and what to do about it is said once."""
    text = Text()
    told: set[str] = set()
    for finding in result.findings:
        _add(text, finding, is_new=finding.code not in told)
        told.add(finding.code)
    if result.findings:
        text.append("\n")
    for problem in result.problems:
        text.append(f"{problem.file}:{problem.line}", "bold")
        text.append(f" not read: {problem.reason}\n", "yellow")
    text.append(summary(result))
    return text


def _add(text: Text, finding: Finding, is_new: bool) -> None:
    text.append(f"{finding.file}:{finding.line}:{finding.column}", "bold")
    text.append(f" {finding.code}", "red" if finding.when == Place.STEP.value else "yellow")
    text.append(f" {finding.message}{' (fixable)' if finding.fixable else ''}\n")
    if finding.text:
        text.append(f"    {finding.text}\n", SOURCE)
    if is_new:
        text.append(f"    costs: {finding.costs}\n    instead: {finding.instead}\n")
        if finding.unsafe:
            text.append(f"    mind: {finding.unsafe}\n")


def render_rules(rules: tuple[Rule, ...]) -> Text:
    """What is looked for."""
    text = Text()
    for rule in rules:
        text.append(f"{rule.code:24}", "bold")
        asked = " (only with --select)" if rule.is_tentative else ""
        text.append(f" {rule.message}{asked}\n{'':25}instead: {rule.instead}\n")
    return text


def summary(result: Result) -> str:
    """The last lines."""
    found, fixable = len(result.findings), sum(finding.fixable for finding in result.findings)
    counts = ", ".join(f"{code} {n}" for code, n in Counter(f.code for f in result.findings).most_common())
    lines = [f"{plural(found, 'finding')} in {plural(result.files, 'file')}" + (f": {counts}" if counts else "")]
    if fixable:
        lines.append(f"{fixable} can be changed with the same results: floorit scan --diff shows it, --fix does it")
    if not result.trains:
        lines.append("no loop that trains was found: what only slows down a step was not looked for")
    elif found:
        lines.append("whether a line costs anything is for a run to say: floorit run")
    return "\n".join(lines) + "\n"


def to_json(result: Result) -> bytes:
    """Findings without the edits that are ours alone."""
    plain: dict[str, Any] = {
        "format": FORMAT,
        "files": result.files,
        "trains": result.trains,
        "findings": [
            {key: value for key, value in msgspec.structs.asdict(finding).items() if key != "edits"}
            for finding in result.findings
        ],
        "problems": result.problems,
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n"


def plural(count: int, word: str) -> str:
    """1 file, 2 files."""
    return f"{count} {word}{'' if count == 1 else 's'}"
