"""`python -m floorit`."""

from floorit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
