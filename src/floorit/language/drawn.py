"""What a terminal is given to draw, in the language in use."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from floorit.language import ENGLISH, in_use, said
from floorit.language.catalogue import english

SOURCE = Style(dim=True, meta={"verbatim": True})  # of a line of the user's program


class Names(Text):
    """Names and values of the user's program, which are the same in every language."""


def drawn(what: RenderableType) -> RenderableType:
    """The same, its texts translated before they are laid out."""
    if in_use() == ENGLISH or isinstance(what, Names):
        return what
    if isinstance(what, Group):
        return Group(*map(drawn, what.renderables))
    if isinstance(what, Padding):
        return Padding(drawn(what.renderable), (what.top, what.right, what.bottom, what.left))
    if isinstance(what, Table):
        return _table(what)
    if isinstance(what, Text):
        return what.blank_copy("\n").join(map(_line, what.split("\n", allow_blank=True)))
    return said(what) if isinstance(what, str) else what


def _table(table: Table) -> Table:
    for column in table.columns:
        column.header = drawn(column.header)
        column._cells = [drawn(cell) for cell in column._cells]
    return table


def _line(text: Text) -> Text:
    """As one sentence; or each stretch of one style by itself, where more of it is known so."""
    if any(span.style is SOURCE for span in text.spans):
        return text
    whole = _sentence(text)
    edges = {edge for span in text.spans for edge in (span.start, span.end)} - {0, len(text)}
    if not edges or not english(whole.plain):
        return whole
    apart = text.blank_copy("").join(map(_sentence, text.divide(sorted(edges))))
    return apart if english(apart.plain) < english(whole.plain) else whole


def _sentence(text: Text) -> Text:
    """Styles stay with the words that they were given for, where these are still to be found."""
    made = text.blank_copy(said(text.plain))
    for span in text.spans:
        words = text.plain[span.start : span.end].strip()
        options = [made.plain] if words == text.plain.strip() else [words, said(words)]
        for shown in filter(None, options):
            begin = made.plain.find(shown)
            if begin >= 0:
                made.stylize(span.style, begin, begin + len(shown))
                break
    return made
