"""A page, read by a parser that is not ours, and a string that would run as code where it is not escaped."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

HOSTILE = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>&\u2028'\"{{ 7 * 7 }}"


class Parsed(HTMLParser):
    """Scripts, text and attributes of a page, by a parser that is not ours."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.words = ""
        self.ids: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.headings: list[str] = []
        self._in: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids |= {value or "" for name, value in attrs if name == "id"}
        self._in.append(tag)
        if tag == "script":
            self.scripts.append("")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._in and self._in.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self._in[-1:]:
            self.scripts[-1] += data
        elif "style" not in self._in[-1:]:
            self.words += data

    @property
    def data(self) -> dict[str, Any]:
        """What the charts are drawn from."""
        return json.loads(self.scripts[0])
