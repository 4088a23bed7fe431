"""Read files, apply rules, and say what was found."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from floorit.scan import files
from floorit.scan.configs import Config
from floorit.scan.heat import Heat, Place
from floorit.scan.kinds import Kinds
from floorit.scan.project import Project
from floorit.scan.reads import Reads
from floorit.scan.rule import Finding, Match, Problem, Rule, Scene
from floorit.scan.rules import ALL
from floorit.scan.source import File, Unreadable, read


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a project said."""

    files: int
    trains: bool  # whether a loop that trains was found
    findings: list[Finding]
    problems: list[Problem]


def scan(paths: Iterable[Path], rules: tuple[Rule, ...] = ALL, exclude: tuple[str, ...] = ()) -> Result:
    """Of every Python file there."""
    paths = list(paths)
    sources, problems = [], []
    for path in files.python(paths, exclude):
        try:
            sources.append(read(path))
        except Unreadable as error:
            problems.append(Problem(file=shown(path), line=error.line, reason=error.reason))
    project = Project(sources, files.configs(paths, exclude))
    heat = Heat(project)
    kinds = Kinds(project, heat)
    reads = Reads(project, heat)
    configs = {config.path: config for config in project.entries.configs}
    findings = []
    for source in sources:
        found = _of_file(Scene(source, project, heat, kinds, reads), rules)
        if source.path in configs:
            found += _of_config(configs.pop(source.path), reads, rules)
        findings += _sorted(found)
    for config in configs.values():
        findings += _sorted(_of_config(config, reads, rules))
    return Result(files=len(sources), trains=heat.trains, findings=findings, problems=problems)


def _of_file(scene: Scene, rules: tuple[Rule, ...]) -> list[Finding]:
    source = scene.source
    found: list[Finding] = []
    for rule in rules:
        for match in rule.match(scene):
            if isinstance(match.node, int):
                found += _wanted(source, rule, match, Place.ONCE, "")
                continue
            inside = source.function(match.node)
            place = scene.heat.of(source, match.node)
            name = "" if inside is None or isinstance(inside, ast.Lambda) else inside.name
            found += _wanted(source, rule, match, place if place is not Place.EVALUATION else Place.ONCE, name)
    return found


def _of_config(config: Config, reads: Reads, rules: tuple[Rule, ...]) -> list[Finding]:
    return [
        finding
        for rule in rules
        if rule.match_config is not None
        for match in rule.match_config(config, reads)
        for finding in _wanted(config, rule, match, Place.ONCE, "")
    ]


def _wanted(file: File, rule: Rule, match: Match, place: Place, function: str) -> Iterator[Finding]:
    """The finding that a match makes, unless a comment says that it is not wanted."""
    node = match.node
    line, column = (node, 0) if isinstance(node, int) else (getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
    if file.is_ignored(line, rule.code):
        return
    yield Finding(
        code=rule.code,
        file=shown(file.path),
        line=line,
        column=column + 1,
        message=match.message or rule.message,
        costs=rule.costs,
        instead=match.instead or rule.instead,
        when=place.value,
        risk=rule.risk,
        unsafe=rule.unsafe,
        fixable=bool(match.edits) and rule.risk == "exact" and not rule.unsafe,
        text=file.lines[line - 1].strip() if line <= len(file.lines) else "",
        function=function,
        edits=match.edits,
    )


def _sorted(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.line, finding.column))


def shown(path: Path) -> str:
    """From where we are, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
