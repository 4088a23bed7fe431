"""What was found, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from rich.text import Text

from floorit.scan.heat import Place
from floorit.scan.rule import Finding, Problem
from floorit.scan.scan import Result

FORMAT = 1  # of the JSON


def render(result: Result) -> Text:
    """For the terminal: file by file, each finding with its line; what to do about a code is said once."""
    text = Text()
    told: set[str] = set()
    for file, findings in groupby(result.findings, attrgetter("file")):
        text.append(f"{file}\n", "bold")
        for finding in findings:
            _add(text, finding, is_new=finding.code not in told)
            told.add(finding.code)
        text.append("\n")
    for problem in result.problems:
        text.append(f"{_place(problem)}: not read: {problem.reason}\n", "yellow")
    text.append(summary(result))
    return text


def _add(text: Text, finding: Finding, is_new: bool) -> None:
    text.append(f"  {finding.line}:{finding.column} ", "cyan")
    text.append(finding.code, "bold red" if finding.when == Place.STEP.value else "bold yellow")
    text.append(f"  {finding.message}{' (fixable)' if finding.fixable else ''}\n")
    if finding.text:
        text.append(f"      {finding.text}\n", "dim")
    if is_new:
        text.append(f"      costs: {finding.costs}\n")
        text.append(f"      instead: {finding.instead}{f'; unless {finding.unsafe}' if finding.unsafe else ''}\n")


def summary(result: Result) -> str:
    """The last lines."""
    found, fixable = len(result.findings), sum(finding.fixable for finding in result.findings)
    counts = ", ".join(f"{code} {n}" for code, n in Counter(f.code for f in result.findings).most_common())
    lines = [f"{_plural(found, 'finding')} in {_plural(result.files, 'file')}" + (f": {counts}" if counts else "")]
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


def _place(problem: Problem) -> str:
    return f"{problem.file}:{problem.line}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
