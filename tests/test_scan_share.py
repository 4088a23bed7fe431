"""Work that is shared out among processes; in a process of its own, as one with threads had better not be forked."""

import subprocess
import sys

import pytest

SHARED = """
import os
from floorit.scan.share import shared

first = os.getpid()

def work(number):
    sum(range(20_000))  # long enough for another process to start meanwhile
    {does}
    return number * number, os.getpid()

results = shared(work, range(300), processes=2)
print([square for square, _ in results] == [number * number for number in range(300)])
print({{process for _, process in results}} == {{first}})
"""
DIES = "os.getpid() == first or os._exit(1)"


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is forked there")
@pytest.mark.parametrize(("does", "is_alone"), [("pass", False), (DIES, True)], ids=["shared", "killed"])
def test_results_are_in_order_whoever_found_them(does: str, is_alone: bool) -> None:
    done = subprocess.run([sys.executable, "-c", SHARED.format(does=does)], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", str(is_alone)], done.stderr
