"""A page of HTML in the language in use: its texts, and the attributes that are read out or shown."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

from floorit.language import said
from floorit.language.catalogue import english

# Elements that stand inside of a sentence, of which one is a word or a few; all others end it.
_INLINE = frozenset("a b br button code em i small span time wbr".split())
_EMPTY = frozenset("br img input link meta wbr".split())
_VERBATIM = frozenset("code script style time".split())
_READ = frozenset(("title", "aria-label"))
_MARK = 0xE000  # private characters that stand for the elements of a sentence while it is translated
_MARKED = re.compile(r"((?:[\ue000-\uf8ff] ?)*)(.*?)((?: ?[\ue000-\uf8ff])*)")  # of which those at its ends are no part


class _Element:
    """An element that stands inside of a sentence; the outermost one is the sentence itself."""

    def __init__(self, begin: str, tag: str, is_verbatim: bool) -> None:
        self.begin, self.tag, self.is_verbatim = begin, tag, is_verbatim
        self.text = ""
        self.elements: list[_Element] = []

    def put(self, element: _Element) -> None:
        self.text += chr(_MARK + len(self.elements))
        self.elements.append(element)

    def html(self) -> str:
        end = f"</{self.tag}>" if self.tag and self.tag not in _EMPTY else ""
        return self.begin + self._inner() + end

    def _inner(self) -> str:
        text = self.text if self.is_verbatim else _sentence(self.text)
        marks = {chr(_MARK + at): element.html() for at, element in enumerate(self.elements)}
        return "".join(marks.get(character) or escape(character, quote=False) for character in text)


def _sentence(text: str) -> str:
    """A sentence in other words; white space around it stays, inside of it a line ends nowhere."""
    core = " ".join(text.split())
    if not core:
        return text
    begin, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    ways = [said(core)]
    if parts := _MARKED.fullmatch(core):
        ways.append(parts[1] + said(parts[2]) + parts[3])
    return begin + min(ways, key=english) + end


class _Page(HTMLParser):
    def __init__(self, language: str) -> None:
        super().__init__(convert_charrefs=True)
        self._language = language
        self._done: list[str] = []
        self._open = [_Element("", "", False)]
        self._verbatim = 0  # block elements around this place that are to be left alone

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        begin = self._begin(tag, attributes)
        is_verbatim = tag in _VERBATIM or ("translate", "no") in attributes
        if tag not in _INLINE:
            self._end_sentence()
            self._done.append(begin)
            self._verbatim += bool(self._verbatim or is_verbatim) and tag not in _EMPTY
            self._open = [_Element("", "", bool(self._verbatim))]
            return
        element = _Element(begin, tag, is_verbatim or self._open[-1].is_verbatim)
        self._open[-1].put(element)
        if tag not in _EMPTY:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag in _INLINE:
            self._open.pop()
            return
        self._end_sentence()
        self._done.append(f"</{tag}>")
        self._verbatim -= bool(self._verbatim)
        self._open = [_Element("", "", bool(self._verbatim))]

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:  # a script or a style, in which nothing is escaped
            self._done.append(data)
        else:
            self._open[-1].text += data

    def handle_decl(self, decl: str) -> None:
        self._done.append(f"<!{decl}>")

    def whole(self) -> str:
        self._end_sentence()
        return "".join(self._done)

    def _end_sentence(self) -> None:
        self._done.append(self._open[0].html())

    def _begin(self, tag: str, attributes: list[tuple[str, str | None]]) -> str:
        said_of = [(name, self._attribute(tag, name, value)) for name, value in attributes]
        words = [name if value is None else f'{name}="{escape(value)}"' for name, value in said_of]
        return f"<{' '.join([tag, *words])}>"

    def _attribute(self, tag: str, name: str, value: str | None) -> str | None:
        if (tag, name) == ("html", "lang"):
            return self._language
        return said(value) if value and name in _READ else value


def translated(html: str, language: str) -> str:
    """The whole page."""
    page = _Page(language)
    page.feed(html)
    page.close()
    return page.whole()
