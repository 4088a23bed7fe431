"""Files that were decoded once are not decoded again: what OpenCV, PIL and numpy made of them is kept.

Each result is found by the file's path, size and time of change, and by how it was to be decoded. The program gets a
copy of its own, which it may change.
"""

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
# Pictures whose bytes are all there is to them; those with a palette, or fewer than eight bits, are decoded each time.
_PLAIN = ("L", "RGB", "RGBA", "CMYK")


def install(session, asked):
    (applied,) = asked.values()
    cache = _Cache(applied, Store(_PLACES[applied.value]()))
    replace = session.patches.replace
    after_import("numpy", lambda numpy: replace(numpy, "load", _keeping_arrays(cache, numpy.load)))
    after_import("cv2", lambda cv2: replace(cv2, "imread", _keeping_arrays(cache, cv2.imread)))
    after_import("PIL.ImageFile", lambda pil: replace(pil.ImageFile, "load", _keeping_pictures(cache, pil)))


class _Cache:
    """What is kept of all files. Whatever fails in it, the file is decoded as ever."""

    def __init__(self, applied, store):
        self._applied = applied
        self._store = store

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
        """Keep what `describe()` gives: parts of bytes, or None."""
        try:
            parts = describe()
            if parts is not None and not self._store.put(name, *parts):
                self._applied.unmet("there is no room left to keep decoded files in")
        except Exception as error:
            self._applied.fail("a decoded file cannot be kept: %r" % (error,))


def _keeping_arrays(cache, function):
    @functools.wraps(function)
    def read(*args, **kwargs):
        numpy = sys.modules["numpy"]
        name = _name(function.__name__, args[0] if args else None, args[1:], sorted(kwargs.items()))
        array = None if name is None else cache.find(name, lambda kept: _array(numpy, kept))
        if array is not None:
            return array
        try:
            array = function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise
        if name is not None and type(array) is numpy.ndarray:
            cache.keep(name, lambda: _described(numpy, array))
        return array

    return read


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


def _described(numpy, array):
    if not array.size or not array.flags.c_contiguous or array.dtype.hasobject or array.dtype.names:
        return None
    description = json.dumps([array.dtype.str, array.shape]).encode()
    return _LENGTH.pack(len(description)), description, array.reshape(-1).view(numpy.uint8).data


def _array(numpy, kept):
    begin = _LENGTH.size + _LENGTH.unpack_from(kept)[0]
    kind, shape = json.loads(bytes(kept[_LENGTH.size : begin]))
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
        try:
            pixels = load(self)
        except BaseException:
            hide_ours()
            raise
        if name is not None:
            cache.keep(name, lambda: (self.tobytes(),))
        return pixels

    return loaded


def _name_of_picture(image_file, picture):
    """None where more than its bytes is read from the file, or where it has been read."""
    kind = type(picture)
    is_plain = kind.load_end is image_file.load_end and kind.load_prepare is image_file.load_prepare
    if not is_plain or not picture.tile or picture.mode not in _PLAIN:
        return None
    path = picture.filename or getattr(picture.fp, "name", None)
    how = (picture.mode, picture.size, repr(picture.tile), repr(getattr(picture, "decoderconfig", None)))
    return _name(kind.__name__, path, *how)


def _restored(pil, picture, kept):
    """As ImageFile.load leaves a picture behind."""
    picture.load_prepare()
    picture.frombytes(bytes(kept))
    picture.tile, picture.readonly = [], 0
    if picture._exclusive_fp and picture._close_exclusive_fp_after_loading:
        picture.fp.close()
    picture.fp = None
    return pil.Image.Image.load(picture)
