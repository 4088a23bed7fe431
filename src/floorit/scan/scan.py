"""Read files, apply rules, and say what was found."""

from __future__ import annotations

import ast
import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec

from floorit.scan import files, paced
from floorit.scan.configs import Config
from floorit.scan.finding import WAITS, Finding, Problem, Result
from floorit.scan.heat import Place
from floorit.scan.project import Project
from floorit.scan.reads import Reads
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.rules import ALL
from floorit.scan.share import shared
from floorit.scan.source import File, Source, Unreadable, read
from floorit.scan.whole import Whole

_OF_GPU = (WAITS, "transfer-bound", "launch-bound")  # that a program without one can't have


def scan(
    paths: Iterable[Path],
    rules: tuple[Rule, ...] = ALL,
    exclude: tuple[str, ...] = (),
    texts: Mapping[Path, str] = MappingProxyType({}),
    processes: int = 1,
    *,
    asked: bool = False,
    of_run: bool = False,
) -> Result:
    """Of every Python file there; `texts` has what is to be read in the place of some of them, by their whole path.

    With `asked`, as the rules were asked for by name, also what reading alone leaves in doubt. With `of_run`, which
    decides what is in doubt, also the settings that its costs may be due to.
    """
    paths = list(paths)
    with _without_collecting():
        return _scan(paths, rules, exclude, texts, processes, asked or of_run, of_run)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Syntax trees are millions of objects that stay: looking through them over and over takes a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _scan(
    paths: list[Path],
    rules: tuple[Rule, ...],
    exclude: tuple[str, ...],
    texts: Mapping[Path, str],
    processes: int,
    asked: bool,
    of_run: bool,
) -> Result:
    sources, problems = [], []
    for path in files.python(paths, exclude):
        try:
            sources.append(read(path, texts.get(whole_path(path))))
        except Unreadable as error:
            problems.append(Problem(file=shown(path), line=error.line, reason=error.reason))
    try:
        shipped = files.configs(paths, exclude), files.commands(paths, exclude)
        whole = Whole(Project(sources, *shipped, is_whole=not problems), asked)
    except Exception as error:  # a fault of ours, which must not cost a run its report
        reason = f"its files could not be read together: {type(error).__name__}: {error}"
        problems.append(Problem(file=", ".join(map(shown, paths)), line=1, reason=reason))
        return Result(files=len(sources), trains=False, findings=[], problems=problems)
    configs = {config.path: config for config in whole.project.entries.configs}

    def said(file: File) -> tuple[list[Finding], list[Problem]]:
        scene = Scene(file, whole) if isinstance(file, Source) else None
        return _of_file(file, scene, configs.get(file.path), whole.reads, rules)

    findings: list[Finding] = []
    read_as_code = {source.path for source in sources}
    others = [config for path, config in configs.items() if path not in read_as_code]
    for found, failed in shared(said, [*sources, *others], processes):
        findings += sorted(found, key=lambda finding: (finding.line, finding.column))
        problems += failed
    said_of_all = Result(files=len(sources), trains=whole.heat.trains, findings=findings, problems=problems)
    return _with_settings(said_of_all, whole) if of_run else said_of_all


def of_run(paths: Iterable[str], texts: Mapping[Path, str] = MappingProxyType({})) -> Result:
    """What there is to say of files that a run was seen in; their names are whole, as in its record. It may have found
    other texts there."""
    found = scan([Path(path) for path in paths if Path(path).is_file()], texts=texts, of_run=True)
    findings = [msgspec.structs.replace(one, file=str(whole_path(one.file)), edits=()) for one in found.findings]
    return msgspec.structs.replace(found, findings=findings)


def _with_settings(result: Result, whole: Whole) -> Result:
    """With what says how often something is done; a fault of ours there must not cost a run its report."""
    try:
        return msgspec.structs.replace(result, paced=list(paced.find(whole)), recomputing=paced.recomputing(whole))
    except Exception as error:
        reason = f"its settings could not be read: {type(error).__name__}: {error}"
        problem = Problem(file="", line=1, reason=reason)
        return msgspec.structs.replace(result, problems=[*result.problems, problem])


def _of_file(
    file: File, scene: Scene | None, config: Config | None, reads: Reads, rules: tuple[Rule, ...]
) -> tuple[list[Finding], list[Problem]]:
    """What rules say of a file: of its code, of its settings, or of both.

    A rule that stumbles over somebody's code is a fault of ours, and no reason to say nothing of the rest.
    """
    found, problems = [], []
    for rule in rules:
        try:
            matches = [m for m in rule.match(scene) if _counts(scene, rule, m)] if scene is not None else []
            if config is not None and rule.match_config is not None:
                matches += rule.match_config(config, reads)
            found += [_finding(file, scene, rule, match) for match in matches]
        except Exception as error:
            reason = f"the rule {rule.code} failed: {type(error).__name__}: {error}"
            problems.append(Problem(file=shown(file.path), line=1, reason=reason))
    return [f for f in _once_a_statement(found) if not file.is_ignored(f.line, f.code)], problems


def _counts(scene: Scene, rule: Rule, match: Match) -> bool:
    if rule.finding in _OF_GPU and not any(program.uses_gpu for program in scene.programs.of(scene.source)):
        return False
    return isinstance(match.node, int) or match.is_left_out or scene.is_reached(match.node)


def _once_a_statement(findings: list[Finding]) -> Iterator[Finding]:
    """One habit in several places of a statement is one; and what waits for the GPU there waits once, as what it has to
    wait for is done by then."""
    seen = set()
    for finding in findings:
        habit = finding.finding if finding.is_wait else finding.code
        if (habit, finding.lines) not in seen:
            seen.add((habit, finding.lines))
            yield finding


def _finding(file: File, scene: Scene | None, rule: Rule, match: Match) -> Finding:
    node = match.node
    place, function, lines, column = Place.ONCE, "", (1, 1), 0
    if isinstance(node, int):
        lines = (node, node)
    elif scene is not None:
        place, lines = scene.heat.of(scene.source, node), _lines(scene.source, node)
        inside = scene.source.function(node)
        function = "" if inside is None or isinstance(inside, ast.Lambda) else inside.name
        column = getattr(node, "col_offset", 0)
    line = getattr(node, "lineno", lines[0])
    return Finding(
        code=rule.code,
        file=shown(file.path),
        line=line,
        column=column + 1,
        lines=lines,
        message=match.message or rule.message,
        costs=rule.costs,
        instead=match.instead or rule.instead,
        when=place.value if place is not Place.EVALUATION else Place.ONCE.value,
        risk=rule.risk,
        unsafe=rule.unsafe,
        fixable=bool(match.edits) and rule.risk == "exact" and not rule.unsafe,
        text=file.lines[line - 1].strip() if line <= len(file.lines) else "",
        function=function,
        finding=rule.finding,
        spares_function=rule.spares_function,
        controls=list(match.controls),
        edits=match.edits,
    )


def _lines(source: Source, node: ast.AST) -> tuple[int, int]:
    """Of the statement that a node is in; of a condition, or of what a loop goes through, its own."""
    statement = source.statement(node) if not isinstance(node, ast.mod) else node
    whole = statement if statement is node or not hasattr(statement, "body") else node
    first = getattr(whole, "lineno", 1)
    return first, getattr(whole, "end_lineno", None) or first


def whole_path(path: str | Path) -> Path:
    """From the root on, without `..`."""
    return Path(os.path.abspath(path))


def shown(path: Path) -> str:
    """From where we are, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
