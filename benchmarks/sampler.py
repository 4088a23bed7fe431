"""The machine sampled as `floorit run` does it, ten times as often, while stdin's last line is "on"."""

import select
import sys
import tempfile
from pathlib import Path

from floorit import telemetry

OFTENER = 10


def main():
    telemetry.PERIOD /= OFTENER
    on = False
    with tempfile.TemporaryDirectory(prefix="floorit-sampler-") as folder:
        sampler = telemetry.Telemetry(Path(folder))
        print("ready", flush=True)
        while True:
            if select.select([sys.stdin], [], [], telemetry.PERIOD / 2 if on else None)[0]:
                line = sys.stdin.readline()
                if not line:
                    return sampler.close()
                on = line == "on\n"
            if on:
                sampler.watch()


if __name__ == "__main__":
    main()
