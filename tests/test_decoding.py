"""Pictures that PIL has decoded once: the second time they are the same in all that a program can ask of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image, ImageFile, PngImagePlugin

from floorit.record.overrides import decoding
from floorit.record.patch import Patches


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mock]:
    """The override, in force in this process."""
    monkeypatch.delenv("FLOORIT_STORE", raising=False)
    told = Mock(value="ram")
    session = SimpleNamespace(patches=Patches())
    decoding.install(session, {"decode-cache": told})
    yield told
    session.patches.undo()
    monkeypatch.delenv("FLOORIT_STORE", raising=False)


def picture(mode: str) -> Image.Image:
    random = np.random.RandomState(3)
    rgb = Image.fromarray(random.randint(0, 255, (9, 7, 3), np.uint8))
    if mode == "I;16":
        return Image.fromarray(random.randint(0, 60000, (9, 7)).astype(np.uint16))
    return rgb.quantize(16) if mode == "P" else rgb.convert(mode)


def facts(path: Path, then: Callable[[Image.Image], Image.Image] = lambda one: one) -> dict[str, Any]:
    """All that a program can ask of a picture, opened and decoded."""
    with Image.open(path) as one:
        one.load()
        made = then(one)
        return {
            "kind": type(one).__name__,
            "mode": one.mode,
            "bytes": made.tobytes(),
            "coloured": made.convert("RGBA").tobytes(),
            "palette": one.getpalette() if one.mode == "P" else None,
            "info": dict(one.info),
            "text": dict(getattr(one, "text", {})),
            "format": one.format,
            "tile": one.tile,
            "closed": one.fp is None,
        }


PNG = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


@pytest.mark.parametrize(
    ("mode", "suffix", "more"),
    [
        *((mode, "png", {}) for mode in PNG),
        ("RGB", "png", {"transparency": (1, 2, 3)}),
        ("P", "png", {"transparency": 3}),
        ("P", "png", {"transparency": bytes(range(16))}),
        *((mode, "jpg", {}) for mode in ("L", "RGB", "CMYK")),
        ("RGB", "bmp", {}),
        ("P", "bmp", {}),
    ],
)
def test_a_picture_is_the_same_the_second_time(
    tmp_path: Path, applied: Mock, mode: str, suffix: str, more: dict[str, Any]
) -> None:
    path = tmp_path / f"a.{suffix}"
    picture(mode).save(path, **more)
    first = facts(path)
    assert not applied.act.called
    second = facts(path)
    assert applied.act.call_count == 1
    assert second == first
    smaller = facts(path, lambda one: one.resize((3, 3)))
    assert applied.act.call_count == 2
    assert smaller == {**first, **{key: smaller[key] for key in ("bytes", "coloured")}}
    assert not applied.fail.called


def test_what_stands_before_the_pixels_is_read_each_time(tmp_path: Path, applied: Mock) -> None:
    said = PngImagePlugin.PngInfo()
    said.add_text("Software", "a plot")
    picture("RGB").save(tmp_path / "a.png", pnginfo=said)
    first, second = facts(tmp_path / "a.png"), facts(tmp_path / "a.png")
    assert applied.act.call_count == 1
    assert second == first
    assert first["text"] == {"Software": "a plot"}


def test_a_picture_that_says_more_after_its_pixels_is_decoded_each_time(tmp_path: Path, applied: Mock) -> None:
    picture("RGB").save(tmp_path / "a.png")
    whole, said = (tmp_path / "a.png").read_bytes(), b"tEXtLate\0words"
    chunk = struct.pack(">I", len(said) - 4) + said + struct.pack(">I", zlib.crc32(said))
    (tmp_path / "a.png").write_bytes(whole[:-12] + chunk + whole[-12:])  # before the end
    first, second = facts(tmp_path / "a.png"), facts(tmp_path / "a.png")
    assert not applied.act.called
    assert first["text"] == second["text"] == {"Late": "words"}


def test_frames_of_an_animation_are_decoded_each_time(tmp_path: Path, applied: Mock) -> None:
    frames = [picture("RGB"), picture("RGB").rotate(180)]
    for name in ("a.png", "a.gif", "a.tiff"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
        for _ in range(2):
            with Image.open(tmp_path / name) as one:
                seen = []
                for frame in range(2):
                    one.seek(frame)
                    seen.append(one.convert("RGB").tobytes())
                assert seen[0] != seen[1]
    assert not applied.act.called


def test_a_file_that_ends_too_early_is_an_error_each_time(tmp_path: Path, applied: Mock) -> None:
    picture("RGB").save(tmp_path / "a.png")
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(whole[: len(whole) // 2])
    for _ in range(2):
        with pytest.raises(OSError, match="truncated"):
            facts(tmp_path / "a.png")
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False
