"""Starts a command among files that it can't change, or that are not all as they are: a script, run by `launch`.

`overlay`: a mount namespace in which every file system that can be written is covered by one in memory. The command
finds its files, and what it writes it can read back; all of it is gone when it ends. Whatever cannot be covered is made
read-only. Needs no rights where unprivileged user namespaces are allowed.

`guard`: the kernel (Landlock) refuses the command and its children every write outside of the folders named. It
is for where namespaces are not allowed, as in most containers; what must write elsewhere fails there.

`shown`: a mount namespace in which only some files are others; what the command writes, it writes.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import signal
import struct
import sys
from collections.abc import Iterator

REFUSED = 125  # exit code where it cannot be done here
NOT_FOUND = 127
OVERLAY, GUARD, SHOWN = "overlay", "guard", "shown"

_NEW_MOUNTS, _NEW_USER = 0x20000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE, _SLAVE = 1, 32, 4096, 16384, 1 << 18, 1 << 19
# Flags of a mount that may not be dropped when it is mounted again: as statvfs tells them, as mount takes them.
_LASTING = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
_SYSTEM = ("/proc", "/sys", "/dev")  # what a program needs of these is no file; /dev/shm is for its workers
_DIES_WITH_PARENT, _NO_NEW_RIGHTS = 1, 38  # prctl
_UNSPEAKABLE = set(",:\\")  # in a path that is to be named in mount options

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Set it up, then become the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=(OVERLAY, GUARD, SHOWN))
    parser.add_argument("--keep", action="append", default=[], help="a folder that really is written to")
    parser.add_argument("--scratch", help="an empty folder, for `overlay`")
    parser.add_argument("--memory", type=int, help="bytes that may be written, for `overlay`")
    parser.add_argument("--show", nargs=2, action="append", default=[], help="a file, and where it is to be found")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --; without one it is only tried")
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command  # some versions drop it
    try:
        if given.how == OVERLAY:
            overlay(given.scratch, given.keep, given.memory, given.show)
        elif given.how == SHOWN:
            shown(given.show)
        else:
            guard(given.keep)
    except OSError as error:
        print(f"{given.how}: {error}", file=sys.stderr)
        return REFUSED
    if not command:
        return 0
    if given.how != SHOWN:  # the others are runs of ours, this one is the user's
        _call("prctl", _DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND


def _call(name: str, *arguments: object) -> int:
    result: int = getattr(_libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


# -- covering --------------------------------------------------------------------------------------------------------


def overlay(scratch: str, keep: list[str], memory: int, show: list[list[str]]) -> None:
    """Cover all that can be written, and go on living below the cover, on which some files are others."""
    folder = os.getcwd()
    mounts = list(_mounts())
    _leave_namespace()
    _mount("none", "/", None, _RECURSIVE | _PRIVATE)
    _mount("floorit", scratch, "tmpfs", 0, f"size={memory},mode=700")
    root = f"{scratch}/root"
    os.mkdir(root)
    _cover("/", root, f"{scratch}/0")
    for path in _SYSTEM:
        _mount(path, root + path, None, _BIND | _RECURSIVE)
    for number, path in enumerate(mounts, 1):
        if path == "/" or _is_in(path, (*_SYSTEM, scratch)):
            continue
        try:
            _cover(path, root + path, f"{scratch}/{number}")
        except OSError:
            if _is_in(folder, (path,)):
                raise  # a program that can write nothing where it works would only fail
            _show_read_only(path, root + path)
    for file, path in show:
        try:
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            shutil.copy2(file, root + path)  # with its time, by which it is known again
        except OSError:  # nothing can be written there
            _mount(file, root + path, None, _BIND)
    for path in keep:
        _mount(path, root + path, None, _BIND)
    os.chroot(root)
    os.chdir(folder)


def _leave_namespace() -> None:
    """Into mounts of our own: with the rights that we have, or in a user namespace where we are who we were."""
    try:
        _call("unshare", _NEW_MOUNTS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _call("unshare", _NEW_USER | _NEW_MOUNTS)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _mounts() -> Iterator[str]:
    """Where something is mounted, outermost first, each once."""
    seen = set()
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            path = line.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
            if path not in seen:
                seen.add(path)
                yield path


def _is_in(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    _call("mount", words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])


def _cover(path: str, target: str, room: str) -> None:
    """Mount at `target` what is at `path`, such that what is written goes to `room`."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        _mount(path, target, None, _BIND)
        return
    if not os.path.isdir(path) or _UNSPEAKABLE & set(path):
        _show_read_only(path, target)
        return
    os.makedirs(f"{room}/upper")
    os.makedirs(f"{room}/work")
    os.chmod(f"{room}/upper", os.stat(path).st_mode & 0o7777)
    options = f"lowerdir={path},upperdir={room}/upper,workdir={room}/work"
    try:
        _mount("overlay", target, "overlay", 0, options + ",userxattr")
    except OSError:  # an older kernel, or one that does without
        _mount("overlay", target, "overlay", 0, options)


def _show_read_only(path: str, target: str) -> None:
    _mount(path, target, None, _BIND)
    flags = os.statvfs(target).f_flag
    lasting = sum(given for told, given in _LASTING.items() if flags & told)
    _mount("none", target, None, _REMOUNT | _BIND | _READ_ONLY | lasting)


# -- showing ---------------------------------------------------------------------------------------------------------


def shown(show: list[list[str]]) -> None:
    """Put files over others, for this process and those that it starts."""
    _leave_namespace()
    _mount("none", "/", None, _RECURSIVE | _SLAVE)  # what is mounted later on is there for it, too
    for file, path in show:
        _mount(file, path, None, _BIND)


# -- guarding --------------------------------------------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on every architecture
_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_CHANGE_FOLDERS = sum(1 << bit for bit in range(4, 13))  # removing and making files, folders, links, sockets


def guard(keep: list[str]) -> None:
    """Forbid every write outside of `keep`, for good."""
    version = _call("syscall", _CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    handled = _WRITE_FILE | _CHANGE_FOLDERS
    handled |= (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = _call("syscall", _CREATE_RULESET, struct.pack("=Q", handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    for path in (*keep, "/dev", "/proc"):
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", handled, folder)
        _call("syscall", _ADD_RULE, rules, ctypes.c_uint32(_PATH_BENEATH), rule, ctypes.c_uint32(0))
        os.close(folder)
    _call("prctl", _NO_NEW_RIGHTS, 1, 0, 0, 0)
    _call("syscall", _RESTRICT_SELF, rules, ctypes.c_uint32(0))
    os.close(rules)


if __name__ == "__main__":
    sys.exit(main())
