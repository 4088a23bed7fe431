"""Read files, apply rules, and say what was found."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from floorit.scan import files
from floorit.scan.heat import Heat, Place
from floorit.scan.kinds import Kinds
from floorit.scan.loaders import Loaders
from floorit.scan.programs import Programs
from floorit.scan.project import Project
from floorit.scan.rule import Finding, Match, Problem, Rule, Scene
from floorit.scan.rules import ALL
from floorit.scan.settings import Settings
from floorit.scan.source import Unreadable, read


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a project said."""

    files: int
    trains: bool  # whether a loop that trains was found
    findings: list[Finding]
    problems: list[Problem]


def scan(paths: Iterable[Path], rules: tuple[Rule, ...] = ALL, exclude: tuple[str, ...] = ()) -> Result:
    """Of every Python file there."""
    sources, problems = [], []
    for path in files.python(paths, exclude):
        try:
            sources.append(read(path))
        except Unreadable as error:
            problems.append(Problem(file=shown(path), line=error.line, reason=error.reason))
    project = Project(sources)
    heat = Heat(project)
    kinds = Kinds(project, heat)
    settings = Settings(project, heat)
    programs = Programs(project, heat, settings)
    loaders = Loaders(project, heat, settings, programs)
    scenes = (Scene(source, project, heat, kinds, settings, programs, loaders) for source in sources)
    findings = [finding for scene in scenes for finding in _of_file(scene, rules)]
    return Result(files=len(sources), trains=heat.trains, findings=findings, problems=problems)


def _of_file(scene: Scene, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    found = [_finding(scene, rule, match) for rule in rules for match in rule.match(scene)]
    found.sort(key=lambda finding: (finding.line, finding.column))
    yield from (f for f in found if not scene.source.is_ignored(f.line, f.code))


def _finding(scene: Scene, rule: Rule, match: Match) -> Finding:
    source, node = scene.source, match.node
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    inside = source.function(node)
    place = scene.heat.of(source, node)
    return Finding(
        code=rule.code,
        file=shown(source.path),
        line=line,
        column=column + 1,
        message=match.message or rule.message,
        costs=rule.costs,
        instead=match.instead or rule.instead,
        when=place.value if place is not Place.EVALUATION else Place.ONCE.value,
        risk=rule.risk,
        unsafe=rule.unsafe,
        fixable=bool(match.edits) and rule.risk == "exact" and not rule.unsafe,
        text=source.lines[line - 1].strip() if line <= len(source.lines) else "",
        function="" if inside is None or isinstance(inside, ast.Lambda) else inside.name,
        edits=match.edits,
    )


def shown(path: Path) -> str:
    """From where we are, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
