"""Run the planted programs of tests/gpu/planted under floorit, say what was found in each, and pack their records.

`python tests/gpu/record_all.py OUTDIR [KIND ...]`; with DEVICE=cpu and SECONDS=4 it runs them small and without a GPU.
The archives that it leaves in OUTDIR are what tests/records holds.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from expected import differences

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLANTED = Path(__file__).parent / "planted"
SOURCE = Path(__file__).parents[2] / "src"
LONGEST = 240  # seconds that a program may take, compilation and all
NOT_PACKED = {"report.json", "report.html"}  # they are made again from the rest


def main(out: Path, kinds: list[str]) -> int:
    """Each program by itself, so that none is in another's way."""
    out.mkdir(parents=True, exist_ok=True)
    every = sorted(path.stem for path in PLANTED.glob("*.toml"))
    wrong = [kind for kind in kinds or every if not record(kind, out)]
    print(f"{len(kinds or every) - len(wrong)} as planted, {len(wrong)} not: {' '.join(wrong) or '-'}", flush=True)
    return bool(wrong)


def record(kind: str, out: Path) -> bool:
    """Run one, pack it, and say whether what was found is what was planted."""
    truth = tomllib.loads((PLANTED / f"{kind}.toml").read_text())
    folder = out / kind
    shutil.rmtree(folder, ignore_errors=True)
    ended = run(kind, truth, folder)
    (out / f"{kind}.log").write_bytes(ended)
    try:
        drawn = json.loads((folder / "report.json").read_text())
    except (OSError, ValueError) as error:
        print(f"NO REPORT {kind}: {error}; see {out / kind}.log", flush=True)
        return False
    shutil.copy(PLANTED / f"{kind}.py", folder / "script.py")
    size = pack(folder, out / f"{kind}.tar.xz")
    said = differences(truth, drawn, folder / "script.py")
    print(f"{'ok   ' if not said else 'WRONG'} {kind}: {verdict(drawn)} ({size / 1024:.0f} KiB)", flush=True)
    for line in said:
        print(f"      {line}", flush=True)
    return not said


def run(kind: str, truth: dict[str, Any], folder: Path) -> bytes:
    """The program under floorit; what both wrote."""
    launcher = [word.format(port=free_port()) for word in truth.get("launcher", ["python"])]
    words = [sys.executable if word == "python" else word for word in launcher]
    command = [sys.executable, "-m", "floorit", "run", "--out", str(folder), "--", *words, str(PLANTED / f"{kind}.py")]
    environ = {**os.environ, "PYTHONPATH": f"{SOURCE}:{os.environ.get('PYTHONPATH', '')}", **truth.get("environ", {})}
    try:
        ended = subprocess.run(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired as expired:
        return expired.output or b"it took too long"
    return ended.stdout


def free_port() -> int:
    """For the ranks of a program to meet at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pack(folder: Path, archive: Path) -> int:
    """The record without its reports; how many bytes it takes."""
    with tarfile.open(archive, "w:xz", preset=6) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in NOT_PACKED:
                packed.add(path, path.relative_to(folder))
    return archive.stat().st_size


def verdict(drawn: dict[str, Any]) -> str:
    """The first finding, its place and its best fix, in a line."""
    if not drawn["findings"]:
        return drawn.get("summary") or "nothing was found"
    first, *others = drawn["findings"]
    place = f" at {Path(first['where'][0]['file']).name}:{first['where'][0]['line']}" if first["where"] else ""
    bound = f" {first['bound']:.2f}x" if first["bound"] else ""
    fix = next((fix for fix in first["fixes"] if fix["speedup"]), None)
    gain = f", {fix['code']} {fix['speedup']['value']:.2f}x" if fix else ""
    then = f"; then {', '.join(f['code'] for f in others)}" if others else ""
    step = f" [{drawn['step']['mean'] * 1e3:.1f} ms a step]" if drawn["step"] else ""
    return f"{first['code']}{bound}{place}{gain}{then}{step}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
