"""Files that were decoded once are not decoded again: what OpenCV, PIL and numpy made of them is kept.

Each result is found by the file's path, size and time of change, and by how it was to be decoded. The program gets a
copy of its own, which it may change. Where it has OpenCV resize that copy and has not changed it, which is seen by
comparing it with what is kept, the resized picture is kept and given out in the same way: one of each, as a program
that asks for another size each time would fill the room with what it never asks for again.
"""

import ctypes
import functools
import json
import os
import struct
import sys

from ..imports import after_import
from ..traces import hide_ours
from .store import InMemory, OnDisk, Store

CODES = ("decode-cache",)
_PLACES = {"ram": InMemory, "disk": OnDisk}
_LENGTH = struct.Struct("<I")  # of the description of an array, which stands before its bytes
# Modes of pictures of which nothing but bytes comes from decoding: a palette is read as the file is opened.
_PLAIN = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F")
_REMEMBERED = 256  # arrays that were given to the program
_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t


def install(session, asked):
    (applied,) = asked.values()
    cache = _Cache(applied, Store(_PLACES[applied.value]()))
    replace = session.patches.replace
    after_import("numpy", lambda numpy: replace(numpy, "load", _keeping_arrays(cache, numpy.load)))
    after_import("cv2", lambda cv2: replace(cv2, "imread", _keeping_arrays(cache, cv2.imread)))
    after_import("cv2", lambda cv2: replace(cv2, "resize", _keeping_resized(cache, cv2.resize)))
    after_import("PIL.ImageFile", lambda pil: replace(pil.ImageFile, "load", _keeping_pictures(cache, pil)))


class _Cache:
    """What is kept of all files. Whatever fails in it, the file is decoded as ever."""

    def __init__(self, applied, store):
        self._applied = applied
        self._store = store
        self._given = {}  # names of the last arrays that the program was given, by the arrays' id

    def named(self, name_of, args, kwargs):
        """The name of what a call gives, and what is noted with it; None and None where it has none."""
        try:
            return name_of(*args, **kwargs)
        except Exception:
            return None, None  # the program will hear of what is wrong with its arguments from the function itself

    def find(self, name, restore):
        """What `restore` makes of the bytes kept under a name; None where there are none."""
        try:
            kept = self._store.get(name)
            found = None if kept is None else restore(kept)
        except Exception as error:
            self._applied.fail("what was kept cannot be used: %r" % (error,))
            return None
        if found is not None:
            self._applied.act()
        return found

    def keep(self, name, describe):
        """Keep what `describe()` gives, parts of bytes or None; whether it is kept."""
        try:
            parts = describe()
            if parts is None:
                return False
            if self._store.put(name, *parts):
                return True
            self._applied.unmet("there is no room left to keep decoded files in")
        except Exception as error:
            self._applied.fail("a decoded file cannot be kept: %r" % (error,))
        return False

    def give(self, array, name):
        """The program gets an array that is kept under a name.

        No reference to it stays, not even a weak one: numpy would not let the program resize it in place.
        """
        if len(self._given) >= _REMEMBERED:
            self._given.clear()
        self._given[id(array)] = name

    def name_of_resized(self, array, how):
        """The name for what is made of an array that is as it was given to the program; None where it can't be kept."""
        source = self._given.get(id(array))
        if source is None:
            return None
        name = ("resize", source)
        resized = self._store.get(name)
        if resized is not None and _description(resized)[2] != how:
            return None  # another size of it is kept
        kept = self._store.get(source)
        return name if kept is not None and _is_same(array, kept) else None


def _keeping_arrays(cache, function):
    def name_of(path=None, *args, **kwargs):
        return _name(function.__name__, path, _told((args, sorted(kwargs.items())))), None

    return _keeping(cache, function, name_of)


def _keeping_resized(cache, resize):
    """What OpenCV made of a picture that is as it was read."""

    def name_of(src=None, dsize=None, dst=None, *args, **kwargs):
        how = _told((dsize, dst, args, sorted(kwargs.items())))
        return cache.name_of_resized(src, how), how

    return _keeping(cache, resize, name_of)


def _keeping(cache, function, name_of):
    """A function whose arrays are kept: `name_of` gives the name for a call's arguments, or None, and what is noted."""

    @functools.wraps(function)
    def made(*args, **kwargs):
        numpy = sys.modules["numpy"]
        name, how = cache.named(name_of, args, kwargs)
        array = None if name is None else cache.find(name, lambda kept: _array(numpy, kept, how))
        if array is not None:
            cache.give(array, name)
            return array
        try:
            array = function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        has_name = name is not None and type(array) is numpy.ndarray
        if has_name and cache.keep(name, lambda: _described(numpy, array, how)):
            cache.give(array, name)
        return array

    return made


def _name(kind, path, *how):
    """By which a decoded file is found; None where it is not a file by its path."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    try:
        path = os.path.abspath(path)
        found = os.stat(path)
    except (OSError, ValueError):
        return None  # the program will hear of it from the function itself
    return (kind, path, found.st_size, found.st_mtime_ns, *how)


def _told(value):
    """Arguments as a text that tells them from all others; TypeError where there is none."""
    kind = type(value)
    if kind in (tuple, list):
        return "(%s)" % ", ".join(map(_told, value))
    if isinstance(value, sys.modules["numpy"].number):
        return "%s %r" % (value.dtype.str, value.item())
    if value is None or kind in (int, float, bool, str):
        return repr(value)
    raise TypeError(kind)


def _described(numpy, array, how):
    if not array.size or not array.flags.c_contiguous or array.dtype.hasobject or array.dtype.names:
        return None
    description = json.dumps([array.dtype.str, array.shape, how]).encode()
    return _LENGTH.pack(len(description)), description, array.reshape(-1).view(numpy.uint8).data


def _description(kept):
    """An array's type and shape, what was noted, and where its bytes begin."""
    begin = _LENGTH.size + _LENGTH.unpack_from(kept)[0]
    kind, shape, how = json.loads(bytes(kept[_LENGTH.size : begin]))
    return kind, tuple(shape), how, begin


def _is_same(array, kept):
    """Whether an array is what is kept, to the last byte."""
    kind, shape, _, begin = _description(kept)
    if type(array) is not sys.modules["numpy"].ndarray:
        return False  # another object in the place of one that is gone
    if array.dtype.str != kind or array.shape != shape or not array.flags.c_contiguous:
        return False
    first = ctypes.addressof(ctypes.c_char.from_buffer(kept, begin))
    return _compare(first, array.__array_interface__["data"][0], array.nbytes) == 0


def _array(numpy, kept, how):
    """The array; None where something else was noted with it: another process may just have kept another size."""
    kind, shape, noted, begin = _description(kept)
    if noted != how:
        return None
    array = numpy.empty(shape, kind)
    array.reshape(-1).view(numpy.uint8)[:] = kept[begin:]
    return array


def _keeping_pictures(cache, pil):
    image_file, load = pil.ImageFile, pil.ImageFile.load

    @functools.wraps(load)
    def loaded(self):
        name = _name_of_picture(image_file, self)
        pixels = None if name is None else cache.find(name, lambda kept: _restored(pil, self, kept))
        if pixels is not None:
            return pixels
        before = None if name is None else _told_beside(self)
        try:
            pixels = load(self)
        except BaseException:
            hide_ours()
            raise
        if name is not None and _told_beside(self) == before:  # what follows the pixels would not be read again
            cache.keep(name, lambda: (self.tobytes(),))
        return pixels

    return loaded


def _name_of_picture(image_file, picture):
    """None where more than its bytes may come of decoding it, or where that is done."""
    kind = type(picture)
    is_plain = kind.load_end is image_file.load_end and kind.load_prepare is image_file.load_prepare
    is_known = is_plain or (_is_png(kind) and not picture.is_animated and picture.png is not None)
    if not is_known or not picture.tile or picture.mode not in _PLAIN:
        return None
    path = picture.filename or getattr(picture.fp, "name", None)
    how = (picture.mode, picture.size, repr(picture.tile), repr(getattr(picture, "decoderconfig", None)))
    return _name(kind.__name__, path, *how)


def _is_png(kind):
    return kind is getattr(sys.modules.get("PIL.PngImagePlugin"), "PngImageFile", None)


def _told_beside(picture):
    """What a picture says beside its pixels; the end of a file may add to it."""
    text = picture.png.im_text if getattr(picture, "png", None) is not None else getattr(picture, "_text", None)
    return dict(picture.info), dict(text or {}), len(getattr(picture, "private_chunks", ()))


def _restored(pil, picture, kept):
    """As ImageFile.load leaves a picture behind."""
    picture.load_prepare()
    picture.frombytes(bytes(kept))
    picture.tile, picture.readonly = [], 0
    if _is_png(type(picture)):
        picture._text = picture.png.im_text
        picture.png.close()
        picture.png = None
    if picture._exclusive_fp and picture._close_exclusive_fp_after_loading:
        picture.fp.close()
    picture.fp = None
    return pil.Image.Image.load(picture)
