"""A room for programs that work on untrusted input: no network, a system to read, one folder to write to, limits.

Linux only: bubblewrap where it is installed, otherwise namespaces of the kernel by our own program. Both start
`sandbox_init.py` as the first process in there, which watches over memory, processes and time. A program ends with the
thread that started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.worker.programs import find_program

Kind = Literal["bwrap", "unshare"]
INIT = Path(__file__).with_name("sandbox_init.py")
SOURCE_ROOT = INIT.parents[3]
ENDED = "sandbox: ended: "
"""How the last line of stderr of a program begins that went past a limit."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/sys")
_SETTINGS = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "nsswitch.conf", "localtime", "timezone",
             "alternatives", "os-release", "machine-id", "OpenCL", "vulkan")  # fmt: skip
"""Of `/etc`: nothing that holds a secret."""
_ACCELERATORS = ("dri", "accel", "kfd", "dxg", "nvidia0", "nvidiactl", "nvidia-uvm", "fastrpc-cdsp", "adsprpc-smd")
_KEPT = ("PATH", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED",
         "CUDA_VISIBLE_DEVICES")  # fmt: skip
_KEPT_BEGINNINGS = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "ORT_", "QNN_", "QAIRT_")
"""Variables that programs see; tokens, passwords and sockets of the user are not among them."""
_PROBE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class RoomLimits:
    """What everything in a sandbox may take together."""

    memory_bytes: int
    processes: int = 2048
    """Threads count."""
    seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {"memory_bytes": self.memory_bytes, "processes": self.processes, "seconds": self.seconds}


@dataclass(frozen=True)
class Room:
    """What a program can see and change."""

    private: Path
    """Holds the program's home and temporary files, and goes with the room; the program cannot see it."""
    limits: RoomLimits
    writable: tuple[Path, ...] = ()
    """Folders, none of them a link: a program that can replace one chooses what the next program may write to."""
    readable: tuple[Path, ...] = ()
    """In addition to the system and this Python."""
    accelerators: bool = False
    """Whether devices other than the processor can be used."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """In addition to those of the user that hold no secrets."""


@dataclass(frozen=True)
class Sandbox:
    """A kind of sandbox that was tried and works here."""

    kind: Kind
    program: Path | None = None
    """bubblewrap."""

    def command(self, argv: list[str], room: Room, *, folder: Path) -> list[str]:
        """The words that run a program in a room, in a folder of it."""
        private = room.private.resolve()
        for name in ("home", "root"):
            (private / name).mkdir(exist_ok=True)
        # Places for mounts are made in there before the program starts: what an earlier one left could lead elsewhere.
        temporary = tempfile.mkdtemp(prefix="tmp-", dir=private)
        changed = [*(str(path.resolve()) for path in room.writable), str(private / "home")]
        paths = [*_system(), *_python(), *room.readable]
        mounts = [{"source": p, "path": p, "writable": False} for p in _tops(paths, outside=changed)]
        mounts += [{"source": temporary, "path": "/tmp", "writable": True}]  # noqa: S108 - in the room
        mounts += [{"source": p, "path": p, "writable": True} for p in changed]
        mounts.sort(key=lambda mount: str(mount["path"]).count("/"))
        spec: dict[str, Any] = {
            "kind": self.kind,
            "parent": os.getpid(),
            "root": str(private / "root"),
            "folder": str(folder.resolve()),
            "mounts": mounts,
            "links": _links(paths, mounts),
            "devices": list(_ACCELERATORS) if room.accelerators else [],
            "shared_bytes": room.limits.memory_bytes // 8,
            "limits": room.limits.to_json(),
        }
        init = [sys.executable, "-I", "-S", str(INIT), json.dumps(spec), *argv]
        return init if self.program is None else [str(self.program), *_bubblewrap(spec), "--", *init]

    def environment(self, room: Room) -> dict[str, str]:
        """The variables that programs in a room see."""
        kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_BEGINNINGS)}
        own = {"HOME": str(room.private.resolve() / "home"), "TMPDIR": "/tmp"}  # noqa: S108 - in the room
        return {**kept, **own, **room.variables}


def find_sandbox() -> Sandbox:
    """The sandbox that this machine has; an error with the reasons when it has none."""
    if sys.platform != "linux":
        raise UnavailableError("there is no sandbox on this system")
    program = find_program("bwrap")
    tried: list[Sandbox] = [Sandbox("bwrap", program)] if program else []
    reasons = [] if program else ["bubblewrap (`bwrap`) is not installed"]
    for sandbox in (*tried, Sandbox("unshare")):
        reason = try_out(sandbox)
        if reason is None:
            return sandbox
        reasons.append(f"{sandbox.kind}: {reason}")
    raise UnavailableError(f"no sandbox works on this machine: {'; '.join(reasons)}")


def try_out(sandbox: Sandbox) -> str | None:
    """Why a sandbox does not work here; None when it does."""
    with tempfile.TemporaryDirectory(prefix="winml-sandbox-") as name:
        room = Room(Path(name), RoomLimits(memory_bytes=2**30))
        argv = sandbox.command([sys.executable, "-I", "-S", "-c", ""], room, folder=Path("/"))
        try:
            done = subprocess.run(
                argv, env=sandbox.environment(room), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                timeout=_PROBE_TIMEOUT_S,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return None if done.returncode == 0 else (lines[-1] if lines else f"it exited with {done.returncode}")


def memory_limit() -> int:
    """Three quarters of this machine's memory."""
    if sys.platform == "win32":
        raise UnavailableError("there is no sandbox on this system")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4


def _system() -> Iterator[Path]:
    yield from (path for word in _SYSTEM if os.path.lexists(path := Path(word)))
    yield from (path for word in _SETTINGS if os.path.lexists(path := Path("/etc") / word))


def _python() -> Iterator[Path]:
    """Everything this Python imports from; not the working directory, which it may import from as well."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), SOURCE_ROOT, Path(sys.executable).parent)
    words = [*sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    private = [Path.cwd()]
    with contextlib.suppress(RuntimeError):  # a user without a name has no home
        private.append(Path.home())
    for path in (Path(word) for word in words if word):
        if path.is_absolute() and path.exists() and not any(place.is_relative_to(path) for place in private):
            yield path


def _tops(paths: Iterable[Path], *, outside: list[str]) -> list[str]:
    """Real paths that lie in none of the others, and in none of the folders outside of which they are wanted."""
    found: list[Path] = []
    for path in sorted({p.resolve() for p in paths if p.exists()}, key=lambda p: len(p.parts)):
        if not any(path.is_relative_to(top) for top in (*found, *map(Path, outside))):
            found.append(path)
    return [str(path) for path in found]


def _links(paths: Iterable[Path], mounts: list[dict[str, Any]]) -> dict[str, str]:
    """Links on the way to paths that no mount contains, with their targets."""
    brought = [mount["path"] for mount in mounts if mount["source"] == mount["path"]]
    found: dict[str, str] = {}
    for path in paths:
        left = [path.absolute()]
        while left:
            at = next((p for p in (*reversed(left[-1].parents), left[-1]) if p.is_symlink()), None)
            rest = left.pop()
            if at is None or str(at) in found:
                continue
            target = at.readlink()
            if not any(at.is_relative_to(place) for place in brought):
                found[str(at)] = str(target)
            left.append(Path(os.path.normpath(at.parent / target)) / rest.relative_to(at))
    return found


def _bubblewrap(spec: dict[str, Any]) -> Iterator[str]:
    """The arguments of bubblewrap."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--dev", "/dev")
    for mount in spec["mounts"]:
        yield from ("--bind" if mount["writable"] else "--ro-bind", mount["source"], mount["path"])
    for link, target in spec["links"].items():
        yield from ("--symlink", target, link)
    for name in spec["devices"]:
        yield from ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")
    yield from ("--size", str(spec["shared_bytes"]), "--tmpfs", "/dev/shm")  # noqa: S108 - in the room
    # A user who is root outside may write to /proc/sys by being its owner; bubblewrap leaves it writable for them.
    yield from ("--remount-ro", "/dev", "--proc", "/proc", "--remount-ro", "/proc", "--remount-ro", "/")
