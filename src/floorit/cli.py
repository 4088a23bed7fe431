"""The entry point: reads the command line, and imports only what the verb that is typed needs."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable

from floorit import commandline, language
from floorit.errors import FlooritError
from floorit.language import said


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    if sys.platform == "win32":
        print(said("floorit: Windows is not supported; Linux is, macOS as far as it goes."), file=sys.stderr)
        return 1
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return _dispatch(given)
    except FlooritError as error:
        print(said(f"floorit: {error} [{error.slug}]"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _dispatch(given: list[str]) -> int:
    commandline.check_verb(given)
    parser = commandline.parser(given[0] if given else "")
    own, command = commandline.split(given)
    options = parser.parse_args(own)
    options.command = command
    _speak(options)
    verb = commandline.VERBS.get(getattr(options, "verb", ""))
    if verb is None:
        parser.print_help(sys.stderr)
        return 2
    run: Callable[[argparse.Namespace], int] = getattr(importlib.import_module(verb.module), verb.function)
    return run(options)


def _speak(options: argparse.Namespace) -> None:
    """Choose the language: as typed, else as the environment says, else English; and where it cannot be written."""
    code = getattr(options, "lang", None) or language.named(os.environ.get(language.VARIABLE) or language.ENGLISH)
    if code != language.ENGLISH and not language.speaks_utf8(sys.stderr):
        print(f"floorit: this terminal cannot show {code}: English", file=sys.stderr)
        code = language.ENGLISH
    language.use(code)
