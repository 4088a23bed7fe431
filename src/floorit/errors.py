"""What can go wrong and is said in one line.

FlooritError
├── UsageError          the command line does not make sense        exit code 2
├── CommandNotFound     the user's command cannot be started        exit code 127
├── OutputError         a folder cannot be written                  exit code 73
├── RecordError         a folder holds no record that can be read   exit code 66
├── TruthError          a case's truth.toml cannot be read          exit code 65
├── TrialError          a program cannot be tried                   exit code 70
│   └── RanOut          it runs out of memory as it is
└── CaseError           a case cannot be run here                   exit code 69
"""


class FlooritError(Exception):
    """Base of everything floorit raises on purpose. `slug` leads to docs/messages.md."""

    exit_code = 1
    slug = "error"


class UsageError(FlooritError):
    """The command line does not make sense."""

    exit_code = 2
    slug = "usage"


class CommandNotFound(FlooritError):
    """The user's command cannot be started."""

    exit_code = 127
    slug = "command-not-found"


class OutputError(FlooritError):
    """A folder cannot be written."""

    exit_code = 73
    slug = "output"


class RecordError(FlooritError):
    """A folder holds no record that can be read."""

    exit_code = 66
    slug = "record"


class TruthError(FlooritError):
    """A case's truth.toml cannot be read."""

    exit_code = 65
    slug = "truth"


class TrialError(FlooritError):
    """A program cannot be tried: it does not run well as it is, or not here."""

    exit_code = 70
    slug = "trial"


class RanOut(TrialError):
    """A program runs out of memory as it is."""


class CaseError(FlooritError):
    """A case cannot be run here."""

    exit_code = 69
    slug = "case"
