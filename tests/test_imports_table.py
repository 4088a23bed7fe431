"""Who may import whom: the process boundary and the one-way flow, held by reading the source."""

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "floorit"
STDLIB = set(sys.stdlib_module_names)

# part -> parts of floorit it may import. A part is a module or a package directly under src/floorit.
#        It may always import itself and errors. What is not listed here fails, so that a new part is thought about.
MAY_IMPORT = {
    "__init__": set(),
    "__main__": {"cli"},
    "errors": set(),
    "language": set(),
    "record": set(),  # runs in the user's process
    "stats": set(),
    "clock": {"record"},  # only record.wire, see below
    "replay": {"clock", "record"},
    "tables": {"record", "replay"},
    "patterns": {"record", "replay"},
    "player": {"patterns", "record", "replay", "tables"},
    "qualnames": set(),
    "packing": {"player", "tables"},
    "events": {"packing", "patterns", "player", "qualnames", "record", "replay", "tables"},
    "condense": {"events", "packing", "record", "replay", "tables"},
    "cores": set(),
    "outlay": set(),
    "truth": {"stats"},
    "hardware": set(),
    "vitals": set(),
    "telemetry": {"vitals"},
    "declared": {"events", "record"},
    "headroom": {"events"},
    "usage": {"events"},
    "scan": {"declared", "language", "record"},  # of the recorder only which keys mean a setting
    "runfile": {"analyse", "declared", "events", "hardware", "scan"},
    "analyse": {"declared", "events", "replay", "scan", "stats", "record", "vitals"},
    "diagnose": {"analyse", "declared", "events", "replay", "stats", "record"},
    "fixes": {"analyse", "declared", "stats"},
    "plan": {"analyse", "diagnose", "fixes", "stats"},
    "report": {
        *("analyse", "declared", "diagnose", "events", "fixes", "hardware", "language", "plan"),
        *("outlay", "runfile", "stats", "truth", "record", "vitals"),
    },
    "compare": {"analyse", "events", "fixes", "hardware", "language", "report", "runfile", "stats"},
    "watch": {"analyse", "declared", "events", "language", "report", "runfile", "stats", "vitals"},
    "launch": {"record", "hardware", "runfile"},
    "apart": set(),
    "imagebench": set(),  # a script of its own, run by the program's Python
    "imagecosts": {"analyse", "events", "imagebench"},
    "rating": set(),  # runs in the user's interpreter
    "rates": {"events", "rating"},
    "sandbox": {"apart"},
    "drain": {"analyse", "events", "launch", "live", "record", "runfile", "sandbox"},
    "floorrun": {"analyse", "events", "launch", "live", "rates", "record", "replay", "runfile", "sandbox"},
    "trial": {
        *("analyse", "declared", "events", "fixes", "hardware", "language", "launch", "live"),
        *("outlay", "reading", "record", "report", "runfile", "sandbox", "stats", "telemetry", "turning", "typed"),
        *("vitals",),
    },
    "reading": {"analyse", "declared", "events", "runfile", "scan"},
    "live": {"analyse", "events", "language", "replay", "record", "stats"},
    "turning": {"declared", "events", "fixes", "scan", "typed"},
    "typed": {"declared"},
    "recipe": {"declared", "fixes", "turning"},
    "tune": {
        *("analyse", "declared", "events", "fixes", "language", "recipe", "report", "runfile", "scan", "stats"),
        *("trial", "turning", "typed"),
    },
    "demo": {"language", "truth"},
    "commandline": {"__init__", "demo", "fixes", "language", "outlay", "trial", "truth", "tune"},
    "verbs": {
        *("analyse", "commandline", "condense", "cores", "declared", "demo", "drain", "events", "fixes", "floorrun"),
        *("hardware",),
        *("headroom", "imagecosts", "language", "launch", "live", "reading", "recipe", "record", "report", "runfile"),
        *("sandbox", "telemetry", "trial", "truth", "tune", "turning", "typed", "usage", "watch"),
    },
    "cli": {"commandline", "language"},
}

# What a part may import from outside of the standard library.
MAY_INSTALL = {
    "record": {"torch"},
    "stats": {"msgspec", "numpy"},
    "replay": {"msgspec"},
    "tables": {"numpy"},
    "patterns": {"msgspec", "numpy"},
    "player": {"msgspec", "numpy"},
    "packing": {"msgspec", "numpy"},
    "events": {"msgspec", "numpy"},
    "condense": {"msgspec", "numpy", "psutil"},
    "truth": {"msgspec"},
    "language": {"polib", "rich"},
    "hardware": {"msgspec", "psutil", "pynvml"},
    "vitals": {"msgspec"},
    "telemetry": {"msgspec", "psutil", "pynvml"},
    "declared": {"msgspec", "tomli", "yaml"},
    "headroom": {"msgspec", "psutil"},
    "runfile": {"msgspec"},
    "analyse": {"msgspec", "numpy"},
    "diagnose": {"msgspec", "numpy"},
    "fixes": {"msgspec"},
    "plan": {"msgspec"},
    "report": {"jinja2", "markupsafe", "msgspec", "numpy", "rich"},
    "compare": {"msgspec", "numpy", "rich"},
    "watch": {"msgspec", "numpy", "rich"},
    "launch": {"msgspec", "psutil"},
    "scan": {"libcst", "msgspec", "rich", "tomli"},
    "rating": {"torch"},
    "rates": {"msgspec"},
    "sandbox": {"msgspec", "psutil"},
    "drain": {"msgspec"},
    "floorrun": {"msgspec"},
    "trial": {"msgspec", "numpy", "psutil", "rich", "yaml"},
    "turning": {"msgspec"},
    "reading": {"msgspec"},
    "recipe": {"msgspec", "tomli"},
    "tune": {"libcst", "msgspec", "rich"},
    "imagebench": {"PIL", "cv2", "numpy", "torch", "torchvision"},
    "imagecosts": {"msgspec"},
    "live": {"numpy", "rich"},
    "demo": {"msgspec"},
    "verbs": {"msgspec", "rich"},
}

# Pure: values in, values out. No torch, no other process, no clock.
PURE = (
    *("clock", "replay", "tables", "patterns", "player", "events", "stats", "truth", "vitals", "declared", "analyse"),
    *("diagnose", "fixes", "plan", "language", "report", "compare"),
)
IMPURE_MODULES = {"torch", "subprocess", "time", "datetime", "random", "socket", "threading", "multiprocessing"}

# Only what the user sees may print, or write to a stream.
SILENT = (
    *("clock", "replay", "tables", "patterns", "player", "events", "stats", "truth", "declared", "analyse", "diagnose"),
    *("fixes", "plan", "cores"),
    *("record", "runfile", "hardware", "vitals", "telemetry", "headroom", "usage"),
)
# Of the recorder, what both sides of the file use: its format, and which keys mean a setting.
SHARED = ("wire", "aliases", "seeding")


def _files():
    return [path for path in sorted(SOURCE.rglob("*.py")) if "__pycache__" not in path.parts]


def _part(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def _imports(path):
    """(full name, line) of everything a file imports, inside functions too; relative names made whole."""
    package = ["floorit", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            if module == "floorit":  # `from floorit import launch` names a part
                yield from ((_whole(alias.name), node.lineno) for alias in node.names)
            else:
                yield module, node.lineno
                yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def _whole(name):
    is_part = (SOURCE / f"{name}.py").exists() or (SOURCE / name).is_dir()
    return f"floorit.{name}" if is_part else "floorit.__init__"


def _cases():
    return [pytest.param(path, id=str(path.relative_to(SOURCE))) for path in _files()]


@pytest.mark.parametrize("path", _cases())
def test_only_what_the_table_allows_is_imported(path):
    part = _part(path)
    assert part in MAY_IMPORT, f"{part} is new: say in the table what it may import"
    allowed = MAY_IMPORT[part] | {part, "errors"}
    for name, line in _imports(path):
        first, *rest = name.split(".")
        if first == "floorit":
            assert not rest or rest[0] in allowed, f"{path}:{line} imports {name}"
        else:
            assert first in STDLIB | MAY_INSTALL.get(part, set()), f"{path}:{line} imports {name}"


@pytest.mark.parametrize("path", [case for case in _cases() if _part(case.values[0]) in PURE])
def test_what_comes_after_the_file_is_pure(path):
    for name, line in _imports(path):
        assert name.split(".")[0] not in IMPURE_MODULES, f"{path}:{line} imports {name}"


@pytest.mark.parametrize("path", [case for case in _cases() if _part(case.values[0]) not in ("record", "launch")])
def test_of_the_recorder_only_what_both_sides_share_is_used_outside_of_it(path):
    for name, line in _imports(path):
        if name.startswith("floorit.record."):
            assert name.split(".")[2] in SHARED, f"{path}:{line} imports {name}"


@pytest.mark.parametrize("path", [case for case in _cases() if _part(case.values[0]) in SILENT])
def test_nothing_is_printed_by_what_computes(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{path}:{node.lineno} prints"
        if _part(path) == "record":
            continue  # it times the program's streams
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            assert node.attr not in ("stdout", "stderr"), f"{path}:{node.lineno} writes to sys.{node.attr}"


@pytest.mark.parametrize("path", [case for case in _cases() if _part(case.values[0]) != "__main__"])
def test_nothing_imports_the_command_line(path):
    assert not [line for name, line in _imports(path) if name.startswith("floorit.cli")]


@pytest.mark.parametrize("path", [case for case in _cases() if _part(case.values[0]) == "record"])
def test_the_recorder_names_itself_only_relatively(path):
    """In the user's process it goes by another name, so that the user's own floorit is not hidden."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not [a for a in node.names if a.name.split(".")[0] == "floorit"], f"{path}:{node.lineno}"
        if isinstance(node, ast.ImportFrom) and not node.level:
            assert (node.module or "").split(".")[0] != "floorit", f"{path}:{node.lineno}"


def test_the_table_has_no_rows_for_what_is_gone():
    parts = {_part(path) for path in _files()}
    assert set(MAY_IMPORT) <= parts
    assert set(MAY_INSTALL) <= parts


def test_the_flow_goes_one_way():
    """No part can reach itself through others."""

    def reach(part, seen):
        for other in MAY_IMPORT[part] - {part}:
            assert other not in seen, f"{other} reaches itself through {part}"
            reach(other, (*seen, other))

    for part in MAY_IMPORT:
        reach(part, (part,))
