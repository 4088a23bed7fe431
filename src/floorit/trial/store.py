"""state.json in the folder of a try: read when it goes on, written after every round."""

from __future__ import annotations

from pathlib import Path

import msgspec

from floorit.errors import OutputError, RecordError
from floorit.trial.arms import Arm
from floorit.trial.state import State

NAME = "state.json"


def save(folder: Path, state: State) -> None:
    """Write it, whole or not at all."""
    partial = folder / (NAME + ".part")
    partial.write_bytes(msgspec.json.encode(state))
    partial.replace(folder / NAME)


def resume(folder: Path, arms: list[Arm], steps: int | None, *, is_begun_with_base: bool = False) -> State:
    """The try in a folder, to go on with; a new one where there is none.

    One that was begun with the program as it is may have other arms by now.
    """
    path, cwd = folder / NAME, str(Path.cwd())
    if not path.exists():
        return State(cwd=cwd, arms=arms, steps=steps)
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from None
    begun_with = state.arms[:1] if is_begun_with_base else state.arms
    if begun_with != arms or state.cwd != cwd or (steps is not None and state.steps not in (None, steps)):
        raise OutputError(f"{folder} holds a try of something else; choose another --out")
    return state
