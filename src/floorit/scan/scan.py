"""Read files, apply rules, and say what was found."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from floorit.scan import files
from floorit.scan.heat import Heat, Place
from floorit.scan.kinds import Kinds
from floorit.scan.project import Project
from floorit.scan.rule import Finding, Match, Problem, Rule, Scene
from floorit.scan.rules import ALL
from floorit.scan.source import Source, Unreadable, read


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
    findings: list[Finding] = []
    for source in sources:
        found, failed = _of_file(Scene(source, project, heat, kinds), rules)
        findings += found
        problems += failed
    return Result(files=len(sources), trains=heat.trains, findings=findings, problems=problems)


def of_run(paths: Iterable[str]) -> list[Finding]:
    """What there is to say of files that a run was seen in; their names are whole, as in its record."""
    found = scan([Path(path) for path in paths if Path(path).is_file()]).findings
    return [msgspec.structs.replace(finding, file=str(Path(finding.file).absolute()), edits=()) for finding in found]


def _of_file(scene: Scene, rules: tuple[Rule, ...]) -> tuple[list[Finding], list[Problem]]:
    """A rule that stumbles over somebody's code is a fault of ours, and no reason to say nothing of the rest."""
    found, problems = [], []
    for rule in rules:
        try:
            found += [_finding(scene, rule, match) for match in rule.match(scene)]
        except Exception as error:
            reason = f"the rule {rule.code} failed: {type(error).__name__}: {error}"
            problems.append(Problem(file=shown(scene.source.path), line=1, reason=reason))
    found.sort(key=lambda finding: (finding.line, finding.column))
    return [f for f in found if not scene.source.is_ignored(f.line, f.code)], problems


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
        lines=_lines(source, node),
        message=match.message or rule.message,
        costs=rule.costs,
        instead=match.instead or rule.instead,
        when=place.value if place is not Place.EVALUATION else Place.ONCE.value,
        risk=rule.risk,
        unsafe=rule.unsafe,
        fixable=bool(match.edits) and rule.risk == "exact" and not rule.unsafe,
        text=source.lines[line - 1].strip() if line <= len(source.lines) else "",
        function="" if inside is None or isinstance(inside, ast.Lambda) else inside.name,
        finding=rule.finding,
        edits=match.edits,
    )


def _lines(source: Source, node: ast.AST) -> tuple[int, int]:
    """Of the statement that a node is in; of a condition, or of what a loop goes through, its own."""
    statement = source.statement(node) if not isinstance(node, ast.mod) else node
    whole = statement if statement is node or not hasattr(statement, "body") else node
    first = getattr(whole, "lineno", 1)
    return first, getattr(whole, "end_lineno", None) or first


def shown(path: Path) -> str:
    """From where we are, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
