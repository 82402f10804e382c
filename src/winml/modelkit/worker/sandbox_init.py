"""The first process of a sandbox: makes the room, gives up every right, starts the program and watches over it.

Run by path, so it imports the standard library alone. It is process 1 of a process namespace: when it ends, the kernel
ends everything that was started in there.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

assert sys.platform == "linux"

ENDED = 137
"""Exit code of a program that went past a limit; the last line of stderr says which."""
_POLL_S = 0.1
_READINGS = 4
"""How many readings in a row have to exceed the limit of memory."""
_LEAST_AVAILABLE = 0.04
"""Part of the machine's memory that is left for other programs."""

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH, _AT_FDCWD, _AT_RECURSIVE = 2, -100, 0x8000
_SYS_MOUNT_SETATTR = 442
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 4, 24, 38, 47
_CAP_VERSION_3 = 0x20080522
_DEVICES = ("null", "zero", "full", "random", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(option: int, *values: int) -> int:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(_libc.prctl(option, *padded))


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    options = None if data is None else data.encode()
    _call(f"mount {target}", _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), options))


def _restrict(target: str, flags: int, *, below: bool) -> None:
    """Set flags of a mount, and of those below it."""
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)
    done = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR), ctypes.c_int(_AT_FDCWD), ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_uint(_AT_RECURSIVE if below else 0), ctypes.byref(attributes), ctypes.c_size_t(32),
    )  # fmt: skip
    _call(f"mount_setattr {target}", done)


def _enter_namespaces(parent: int) -> None:
    """Enter new namespaces, in which the user stays the same."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    user, group = os.getuid(), os.getgid()
    kinds = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    _call("unshare", _libc.unshare(ctypes.c_int(kinds)))
    Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="utf-8")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="utf-8")


def _lead() -> None:
    """Continue as process 1 of the namespace; the original process waits and ends as that one does."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there)
        os.dup2(here, 0)  # a sandbox has no input; end of file means that the other process is gone
        os.close(here)
        return
    os.close(here)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) % 256)


def _make_room(spec: dict[str, Any]) -> None:
    """A root that holds what the description names and nothing else."""
    root: str = spec["root"]
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=4m,mode=755")
    for entry in spec["mounts"]:
        _bind(root, **entry)
    for link, target in spec["links"].items():
        Path(root + link).parent.mkdir(parents=True, exist_ok=True)
        Path(root + link).symlink_to(target)
    _make_devices(root, spec["devices"], spec["shared_bytes"])
    Path(root + "/proc").mkdir(exist_ok=True)
    _mount("proc", root + "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    # A user who is root outside may write to /proc/sys by being its owner, without any capability.
    _restrict(root + "/proc", _MS_RDONLY, below=False)
    _restrict(root, _MS_RDONLY | _MS_NOSUID | _MS_NODEV, below=False)
    os.chdir(root)  # noqa: TID251 - this process has no other code to confuse
    _call("pivot_root", _libc.pivot_root(b".", b"."))
    _call("umount2", _libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")  # noqa: TID251


def _bind(root: str, source: str, path: str, *, writable: bool) -> None:
    target = root + path
    if stat.S_ISDIR(Path(source).stat().st_mode):
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        if not Path(target).exists():
            Path(target).touch()
    # A folder that is written to holds the new root, which must not turn up in itself.
    _mount(source, target, None, _MS_BIND | (0 if writable else _MS_REC))
    _restrict(target, _MS_NOSUID | _MS_NODEV | (0 if writable else _MS_RDONLY), below=not writable)


def _make_devices(root: str, devices: list[str], shared_bytes: int) -> None:
    dev = Path(root + "/dev")
    (dev / "shm").mkdir(parents=True)
    _mount("tmpfs", str(dev / "shm"), "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={shared_bytes},mode=1777")
    for name in (*_DEVICES, *devices):
        source, target = Path("/dev") / name, dev / name
        if not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            target.mkdir()
        else:
            target.touch()
        _mount(str(source), str(target), None, _MS_BIND | _MS_REC)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (dev / name).symlink_to(f"/proc/self/fd/{number}")
    (dev / "fd").symlink_to("/proc/self/fd")


def _give_up_rights() -> None:
    """No capability, now or by starting another program."""
    _prctl(_PR_CAP_AMBIENT, 4)
    number = 0
    while _prctl(_PR_CAPBSET_DROP, number) == 0:
        number += 1
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION_3, 0)
    _call("capset", _libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())))
    _call("prctl", _prctl(_PR_SET_NO_NEW_PRIVS, 1))


def _set_limits(processes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Since Linux 5.14 counted by namespace; before, every process of this user would count.
    major, minor = (int(word) for word in os.uname().release.split("-")[0].split(".")[:2])
    if (major, minor) >= (5, 14):
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        few = processes if most == resource.RLIM_INFINITY else min(processes, most)
        resource.setrlimit(resource.RLIMIT_NPROC, (few, few))


def _start(argv: list[str], folder: str) -> int:
    child = os.fork()
    if child != 0:
        return child
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, 1 << 20)  # nothing of ours that was left open
        os.chdir(folder)  # noqa: TID251
        os.execvp(argv[0], argv)  # noqa: S606 - the program that the sandbox is for
    except OSError as error:
        os.write(2, f"sandbox: {argv[0]} in {folder}: {error.strerror}\n".encode())
        os._exit(127)


def _usage(*, shared_once: bool) -> tuple[int, int]:
    """Memory that cannot be dropped, and processes with their threads, of everything but this process.

    What forked processes share counts for each of them, unless `shared_once`, which takes longer to read.
    """
    used = threads = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - read in a polling loop
        if not name.isdecimal() or name == "1":
            continue
        status = _numbers(f"/proc/{name}/status", b"RssAnon:", b"RssShmem:", b"Threads:")
        held = [status.get(b"RssAnon:", 0), status.get(b"RssShmem:", 0)]
        if shared_once:
            parts = _numbers(f"/proc/{name}/smaps_rollup", b"Pss_Anon:", b"Pss_Shmem:")
            held = list(parts.values()) or held
        used += sum(held) * 1024
        threads += status.get(b"Threads:", 0)
    shared = os.statvfs("/dev/shm")  # noqa: S108 - how much of it is in use
    return used + (shared.f_blocks - shared.f_bfree) * shared.f_frsize, threads


def _numbers(path: str, *names: bytes) -> dict[bytes, int]:
    """The named numbers of a file about a process; none when the process has ended or must not be asked."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - read in a polling loop
            lines = file.read().splitlines()
    except OSError:
        return {}
    return {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith(names)}


def _available() -> float:
    """Part of the machine's memory that programs can still get."""
    with open("/proc/meminfo", "rb") as file:  # noqa: PTH123 - read in a polling loop
        found = dict(line.split(b":", 1) for line in file)
    return int(found[b"MemAvailable"].split()[0]) / int(found[b"MemTotal"].split()[0])


def _too_much(limits: dict[str, Any], started: float) -> str | None:
    """The limit that was exceeded, as a sentence."""
    used, threads = _usage(shared_once=False)
    if threads > limits["processes"]:
        return f"it has {threads} processes and threads; {limits['processes']} are allowed"
    for _ in range(_READINGS):
        # Processes are read one after another: what one shared with others that end meanwhile counts several times.
        if used > limits["memory_bytes"]:
            used = _usage(shared_once=True)[0]
    if used > limits["memory_bytes"]:
        return f"it uses {used / 2**20:.0f} MiB of memory; {limits['memory_bytes'] / 2**20:.0f} MiB are allowed"
    if limits["seconds"] is not None and time.monotonic() - started > limits["seconds"]:
        return f"it takes longer than {limits['seconds']:g} s"
    if used > limits["memory_bytes"] // 8 and _available() < _LEAST_AVAILABLE:
        return "the machine runs out of memory"
    return None


def _watch(child: int, limits: dict[str, Any], *, led: bool) -> int:
    """The exit code of the program; everything that is left over is collected on the way."""
    started = time.monotonic()
    ended, wakeup = os.pipe()
    for end in (ended, wakeup):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    while True:
        found, status = os.waitpid(-1, os.WNOHANG)
        if found == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if found:
            continue
        passed = _too_much(limits, started)
        if passed is not None:
            os.kill(-1, signal.SIGKILL)
            os.write(2, f"\nsandbox: ended: {passed}\n".encode())
            return ENDED
        ready, _, _ = select.select([ended, *([0] if led else [])], [], [], _POLL_S)
        if 0 in ready:
            return 1  # the process that waits for this one is gone
        if ended in ready:
            os.read(ended, 4096)


def main() -> None:
    spec: dict[str, Any] = json.loads(sys.argv[1])  # noqa: TID251 - our own words; this runs by itself
    led = spec["kind"] == "unshare"
    try:
        with contextlib.suppress(OSError):  # bubblewrap has made it read-only by now
            Path("/proc/self/oom_score_adj").write_text("1000", "ascii")  # the first to go when memory runs out
        if led:
            _enter_namespaces(spec["parent"])
            _lead()
            _make_room(spec)
        _set_limits(spec["limits"]["processes"])
        _give_up_rights()
        # A program that could change this process could switch off its limits.
        _call("prctl", _prctl(_PR_SET_DUMPABLE, 0))
    except OSError as error:
        os.write(2, f"sandbox: cannot be set up: {error.strerror}\n".encode())
        os._exit(125)
    child = _start(sys.argv[2:], spec["folder"])
    os._exit(_watch(child, spec["limits"], led=led))


main()
