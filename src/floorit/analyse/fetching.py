"""What the dataset does for a sample: reading, decoding, or the rest, by the looks at the workers' stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from floorit.events import Sample

READING, DECODING, REST = "reading", "decoding", "augmentation and the rest"
# Names that a line of the program calls, which are written in C and have no frame of their own.
_DECODES = frozenset(("imread", "imdecode", "decode_image", "decode_jpeg", "decode_png", "read_image", "decode"))
_READS = frozenset(
    ("open", "read", "readinto", "read_bytes", "fromfile", "memmap", "load", "loadtxt", "pread", "read_file", "recv")
)
# Files of libraries whose frames say it, the innermost frame first: (part of the path, what it is).
_LIBRARIES = (
    ("/numpy/lib/", READING),
    ("/torchvision/io/", DECODING),
    ("/PIL/ImageFile", DECODING),
    ("/PIL/JpegImagePlugin", DECODING),
    ("/PIL/PngImagePlugin", DECODING),
    ("/imageio/", DECODING),
    ("/h5py/", READING),
    ("/zarr/", READING),
    ("/lmdb/", READING),
    ("/torch/serialization", READING),
    ("/zipfile", READING),
    ("/tarfile", READING),
    ("/gzip", READING),
)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of work, its share of the looks, and their number."""

    what: str
    share: float
    looks: int


def kinds(samples: Iterable[Sample]) -> list[Kind]:
    """The looks by kind, most first."""
    found = Counter(_kind(sample) for sample in samples if sample.leaf is not None)
    total = sum(found.values())
    return [Kind(what=what, share=looks / total, looks=looks) for what, looks in found.most_common()]


def _kind(sample: Sample) -> str:
    leaf = sample.leaf
    if leaf is not None and not leaf.is_users:
        by_file = next((what for part, what in _LIBRARIES if part in leaf.file), None)
        if by_file is not None:
            return by_file
        return REST
    used = set(leaf.calls) if leaf is not None else set()
    if used & _DECODES:
        return DECODING
    return READING if used & _READS else REST
