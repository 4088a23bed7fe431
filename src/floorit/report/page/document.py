"""From a template to a page that asks nobody for anything: style, scripts and data are in it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup, escape

from floorit.diagnose.settings import word
from floorit.fixes.values import spelled
from floorit.language import ENGLISH, in_use, said
from floorit.language.markup import translated
from floorit.report import named, words
from floorit.stats import Estimate, duration, prefixed, seconds

# Characters with which data could end the element that it stands in, and those that end a line in a script.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}

_SAID = re.compile(r'say\("([^"]+)"')  # in the script
# What is no text, or code as it is: whole elements, and all other tags with their attributes.
_NO_TEXT = re.compile(r"(<(?:code|script|style|title)\b.*?</(?:code|script|style|title)>|<[^>]*>)", re.DOTALL)
_TYPED = re.compile(r"`([^`]+)`")


def document(template: str, values: dict[str, Any], data: dict[str, Any]) -> str:
    """The whole page: a template filled, and the data that its charts are drawn from."""
    scripts = [_file("echarts/echarts.min.js"), _file("page.js")]
    html = (
        _environment()
        .get_template(template)
        .render(
            **values,
            policy=_policy(scripts),
            style=Markup(_file("page.css")),
            scripts=[Markup(script) for script in scripts],
            data=in_script({**data, "words": _words(data)}),
        )
    )
    return _typeset(html if in_use() == ENGLISH else translated(html, in_use()))


def _typeset(html: str) -> str:
    """What stands between backticks in a text, as code."""
    parts = _NO_TEXT.split(html)
    parts[::2] = [_TYPED.sub(r"<code>\1</code>", text) for text in parts[::2]]
    return "".join(parts)


def _words(data: object) -> dict[str, str]:
    """What the script says, and what it shows of the data, in other words."""
    texts = {*_SAID.findall(_file("page.js")), *_texts(msgspec.to_builtins(data))}
    return {text: words for text in sorted(texts) if (words := said(text)) != text}


def _texts(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, (list, tuple, dict)):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _texts(value)


def in_script(data: object) -> Markup:
    """As JSON that can stand in an element of HTML, whatever strings are in it."""
    text = msgspec.json.encode(data).decode()
    for character, instead in _ESCAPES.items():
        text = text.replace(character, instead)
    return Markup(text)


def _policy(scripts: list[str]) -> str:
    """What the page may do: run its own scripts and use its own style; nothing may be fetched or sent."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        seconds=seconds,
        duration=duration,
        size=words.size,
        number=words.number,
        prefixed=prefixed,
        interval=words.interval,
        place=words.place,
        breakable=breakable,
        word=word,
        spelled=spelled,
        percent=percent,
        spread=spread,
        foretold=foretold,
        sentence=sentence,
        inside=named.inside,
        large=named.large,
        calls=named.calls,
    )
    return made


def breakable(path: str) -> Markup:
    """A path that may go on in the next line after each folder."""
    return escape(path).replace("/", Markup("/<wbr>"))


def percent(share: float, digits: int = 0) -> str:
    """A share as it is read."""
    return f"{share:.{digits}%}"


def spread(estimate: Estimate | None, unit: str = "seconds") -> str:
    """What a number rests on, to be read beside it."""
    if estimate is None:
        return ""
    shown = _UNITS[unit]
    low, high = shown(estimate.low), shown(estimate.high)
    return f"{shown(estimate.value)}; 95 % interval {low} to {high}; n = {estimate.n:,}"


def foretold(speedup: Estimate) -> str:
    """What a prediction rests on, to be read beside it."""
    return f"predicted: likely {speedup.value:.2f}, from {speedup.low:.2f} to {speedup.high:.2f}; n = {speedup.n:,}"


_UNITS: dict[str, Callable[[float], str]] = {
    "seconds": seconds,
    "share": lambda share: percent(share, 1),
    "number": words.number,
}


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
