"""Sentences of one language, found by the English ones that they stand for.

An entry's English text has slots where the code has values: "{0} of the step". It matches any text of that shape, and
what stands in its slots is translated in turn, unless the translation says {0:raw}. Of several entries that match, the
one that leaves the fewest English words is taken; a slot that is itself several texts joined by commas and the like
counts as one more, since that is more often where to divide. Of equals it is the one with the most text of its own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import polib

_SLOT = re.compile(r"\{(\d)(:raw)?\}")
_JOINT = re.compile(r"\{0\}([^{}A-Za-z]+)\{1\}")  # an entry that only joins two texts
_LETTERS = re.compile(r"[A-Za-z]+")
# What is no English: code, a place and the function that is named after it, other scripts.
_CODE = re.compile(r"`[^`]*`|\S+:\d+  \S+(?: -> \S+)?$|[^\x00-\x7f]")
_WORD = re.compile(r"[A-Za-z][a-z]+(?:'s|s'|/s)?")
_NESTED = re.compile(r"`[^`]*`|\([^()]*\)")
_DIVIDES = re.compile(r" · |  |[.;:,] ")
_JOINS = re.compile(r" · |[;:,] ")  # in a text of names and figures
_LISTS = re.compile(r" · |[;,] ")  # in what is not ours
_BEFORE = re.compile(r"[,;:] ")
_SENTENCE = re.compile(r"[a-zA-Z][a-z]|A [a-z]")
_WIDE = {",": "\uff0c", ";": "\uff1b", ":": "\uff1a"}
_NAMES = frozenset("ms min torch floorit numpy Python".split())  # words that are no English
_FEW = 8  # letters: an entry with fewer of its own must be sure of all that it joins
_NAME = 1  # English word: a name hardly has more
# A text that could be divided more often, or takes more looks at its parts, is none of ours.
_PARTS, _LOOKS = 60, 1_500
_KEPT = 20_000  # texts that are remembered
_MIXED = 0.34  # of its words left in English: a text is better left alone than half translated


class Said(NamedTuple):
    """A text, and how many of its words are still English."""

    text: str
    left: int
    doubt: int = 0  # how many values are more likely to be something else
    is_joined: bool = False  # of several texts


class _Entry(NamedTuple):
    pieces: tuple[str, ...]  # what stands around its slots
    joint: str  # of an entry that only joins two texts: what stands between them
    target: str
    weight: int
    is_open: bool  # whether it begins with a slot


class Catalogue:
    """All entries of one language."""

    def __init__(self, entries: dict[str, str]) -> None:
        plain = {_plain(source): target.rstrip("\u3002") for source, target in entries.items()}
        self._known = {source: target for source, target in plain.items() if not _SLOT.search(source)}
        self._shapes = _by_word({source: target for source, target in plain.items() if _SLOT.search(source)})
        self._said: dict[str, Said] = {}
        self._looks = 0

    def say(self, text: str) -> Said:
        """A text, or as much of it as is known; as it is where that is too little."""
        if "\n" in text:
            lines = [self.say(line) for line in text.split("\n")]
            return Said("\n".join(line.text for line in lines), sum(line.left for line in lines))
        if len(_DIVIDES.findall(text)) > _PARTS:
            return Said(text, english(text))
        if len(self._said) > _KEPT or self._looks > _LOOKS:  # then some were not looked at to the end
            self._said.clear()
        self._looks = 0
        made = self._part(text)
        return made if made.left <= _MIXED * english(text) else Said(text, english(text))

    def _part(self, text: str) -> Said:
        core = text.strip()
        if core not in self._said:
            self._said[core] = Said(core, english(core))  # what leads back to itself stays as it is
            self._said[core] = self._found(core)
        made = self._said[core]
        begin = text.index(core)
        return made._replace(text=text[:begin] + made.text + text[begin + len(core) :])

    def _found(self, core: str) -> Said:
        if _BEFORE.match(core):
            rest = self._part(core[2:])
            return rest._replace(text=_WIDE[core[0]] + rest.text)
        made = self._best(_plain(core), core)
        if made is None:
            left = english(core)
            return Said(core, left, 0, (_DIVIDES if left else _JOINS).search(_flat(core)) is not None)
        return made._replace(text=made.text + "\u3002") if _is_closed(core) else made

    def _best(self, text: str, original: str) -> Said | None:
        if text in self._known:
            return Said(self._known[text], 0)
        least, best = english(text), None
        self._looks += 1
        if not least or self._looks > _LOOKS:
            return None
        words = {"", *_LETTERS.findall(text)}
        shapes = sorted((shape for word in words for shape in self._shapes.get(word, ())), key=_by_weight)
        for shape in shapes:
            for slots in _matches(shape, text):
                if shape.is_open:
                    slots[0] = original[: len(slots[0])]  # with its capital
                made = self._filled(shape, slots)
                if made.left + made.doubt < least and not (made.left and 0 < shape.weight < _FEW):
                    least, best = made.left + made.doubt, made
                if not least:
                    return best
        return best

    def _filled(self, shape: _Entry, slots: list[str]) -> Said:
        pieces = _SLOT.split(shape.target)
        text, left, doubt = pieces[0], 0, 0
        for number, is_raw, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            slot = _verbatim(slots[int(number)]) if is_raw else self._part(slots[int(number)])
            if shape.joint:
                text += _listed(slot) + after
            else:
                text = _joined(_joined(text, slot.text), after)
            left += slot.left
            doubt += slot.doubt + (slot.is_joined and not shape.joint)
        return Said(text, left, doubt, bool(shape.joint) or _is_label(shape))


def _is_label(shape: _Entry) -> bool:
    """Whether it only says what the text after it is of."""
    return len(shape.pieces) == 2 and shape.pieces[0].endswith(": ") and not shape.pieces[1]


def _listed(part: Said) -> str:
    """Of a list: names that need no translation are joined as the rest is."""
    is_plain = not part.left and _flat(part.text) == part.text
    return part.text.replace(", ", _WIDE[","]) if is_plain else part.text


def _verbatim(slot: str) -> Said:
    """A name or a message of the system; what reads like several of our own texts is likely not one."""
    return Said(slot, 0, 0, _LISTS.search(_flat(slot)) is not None or english(slot) > _NAME)


def _joined(before: str, after: str) -> str:
    """Two texts with a space between them where one ends in Chinese and the other does not, as is usual."""
    a, b = before.rstrip(), after.lstrip()
    if not a or not b or a.endswith("\n"):
        return before + after
    if _is_mark(a[-1]) or _is_mark(b[0]) or (_is_wide(a[-1]) and _is_wide(b[0])):
        return a + b
    is_border = _is_wide(a[-1]) != _is_wide(b[0]) and (a[-1] + b[0]).isprintable()
    return f"{a} {b}" if is_border else before + after


def _is_wide(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff"


def _is_mark(character: str) -> bool:
    """Punctuation that brings its own space."""
    return "\u3000" <= character <= "\u303f" or "\uff00" <= character <= "\uffef"


def _by_word(entries: dict[str, str]) -> dict[str, list[_Entry]]:
    """Entries by the rarest of their words, which any text that they match has in it."""
    words = {source: _words(source) for source in entries}
    often = Counter(word for of_one in words.values() for word in of_one)
    found = defaultdict(list)
    for source, target in entries.items():
        found[min(sorted(words[source]), key=lambda word: often[word], default="")].append(_entry(source, target))
    return found


def _words(source: str) -> set[str]:
    """Its whole words: one beside a slot may go on in it."""
    return {
        word[0]
        for word in _LETTERS.finditer(source)
        if source[word.start() - 1 : word.start()] not in ("{", "}", ":") and source[word.end() : word.end() + 1] != "{"
    }


def _by_weight(shape: _Entry) -> int:
    return -shape.weight


def _matches(shape: _Entry, text: str) -> Iterator[list[str]]:
    """The ways in which a text has the shape of an entry."""
    if shape.joint:
        found = [[text[: at.start()], text[at.end() :]] for at in re.finditer(re.escape(shape.joint), text)]
    else:
        patterns = _patterns(shape.pieces) if all(piece in text for piece in shape.pieces) else []
        found = [list(matched.groups()) for pattern in patterns if (matched := pattern.fullmatch(text))]
    yield from (slots for slots in found if all(map(_is_whole, slots)))


@cache
def _patterns(pieces: tuple[str, ...]) -> list[re.Pattern[str]]:
    """The ways to divide a text among slots: as early as can be, or as late."""
    return [re.compile(slot.join(map(re.escape, pieces)), re.DOTALL) for slot in ("(.*?)", "(.*)")]


def _is_whole(slot: str) -> bool:
    """Whether it has both ends of all that it opens or closes, and no end where something must follow."""
    text, flat = slot.strip(), _flat(slot)
    is_torn = text.endswith((",", ";", "·")) or text.startswith("·")
    return not (is_torn or text.count("`") % 2 or "(" in flat or ")" in flat)


def _flat(text: str) -> str:
    """Without what stands in parentheses or is code."""
    while (flat := _NESTED.sub("", text)) != text:
        text = flat
    return text


def _entry(source: str, target: str) -> _Entry:
    pieces = _SLOT.split(source)[::3]
    joint = _JOINT.fullmatch(source)
    return _Entry(
        pieces=tuple(pieces),
        joint=joint[1] if joint is not None else "",
        target=target,
        weight=sum(map(len, _LETTERS.findall("".join(pieces)))),
        is_open=not pieces[0],
    )


def english(text: str) -> int:
    """How many of its words are English: not a letter, a name, a figure, a unit or something in backticks."""
    tokens = (token.strip("()[]*,;:.\"'\u201c\u201d") for token in _CODE.sub(" ", text).split())
    return sum(1 for token in tokens if _WORD.fullmatch(token) and token not in _NAMES)


def _is_closed(text: str) -> bool:
    return text.endswith(".") and not text.endswith("..")


def _plain(text: str) -> str:
    """Without the capital and the full stop that a sentence has."""
    text = text.strip()
    text = text[:-1] if _is_closed(text) else text
    return text[:1].lower() + text[1:] if _SENTENCE.match(text) else text


def read(text: str) -> Catalogue:
    """The catalogue in a file of gettext's format."""
    return Catalogue({entry.msgid: entry.msgstr for entry in polib.pofile(text) if entry.msgstr})
