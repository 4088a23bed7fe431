"""What each trap's fix does when the program makes it itself: by the program's own clock, without floorit.

`python tests/traps/by_hand.py [NAME …]`: fresh processes, plain and fixed in turn (ABBA); prints how many times as fast
the fixed one is, with the 95 % interval over the pairs' logarithms. `by_hand` in the .toml files is from here.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np

from floorit.trial.statistics import student

HERE = Path(__file__).parent
PAIRS = 6


def seconds(path: Path, *words: str) -> float:
    """A step's, as the program says."""
    said = subprocess.run([sys.executable, str(path), *words], capture_output=True, text=True, check=True)
    return float(said.stdout.split()[-1])


def main() -> None:
    """All traps, or those named."""
    names = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.toml"))
    for name in names:
        path, logs = HERE / f"{name}.py", []
        for number in range(PAIRS):
            arms = ((), ("--by-hand",))
            took = {words: seconds(path, *words) for words in (arms if number % 2 else arms[::-1])}
            logs.append(math.log(took[()] / took["--by-hand",]))
        middle, half = np.mean(logs), student(0.975, PAIRS - 1) * np.std(logs, ddof=1) / math.sqrt(PAIRS)
        print(f"{name}: {math.exp(middle):.3f} [{math.exp(middle - half):.3f}, {math.exp(middle + half):.3f}]")


if __name__ == "__main__":
    main()
