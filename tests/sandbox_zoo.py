"""The sandboxes of this machine, and a program that tries everything a sandbox forbids."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.worker.sandbox import Room, RoomLimits, Sandbox, find_sandbox, try_out

SOURCE = Path(__file__).parents[1] / "src"
NOBODY = 65534


@functools.cache
def bubblewrap() -> Path | None:
    """The program bwrap; None when it is neither here nor in a package archive that can be reached."""
    import feed_zoo

    found = shutil.which("bwrap")
    if found:
        return Path(found)
    folder = feed_zoo.unpacked("bubblewrap")
    return None if folder is None else folder / "usr/bin/bwrap"


@functools.cache
def available() -> bool:
    """Whether commands can be run in a sandbox here."""
    try:
        find_sandbox()
    except UnavailableError:
        return False
    return True


def of_kind(kind: str) -> Sandbox:
    return Sandbox("unshare") if kind == "unshare" else Sandbox("bwrap", bubblewrap())


@functools.cache
def works(kind: str) -> bool:
    """Whether a kind of sandbox works here."""
    if sys.platform != "linux" or (kind == "bwrap" and bubblewrap() is None):
        return False
    return try_out(of_kind(kind)) is None


def room_in(folder: Path, limits: RoomLimits, *readable: Path) -> Room:
    """A room whose program can write to one folder."""
    for name in ("private", "work"):
        (folder / name).mkdir(exist_ok=True)
    return Room(folder / "private", limits, writable=(folder / "work",), readable=readable)


def run(sandbox: Sandbox, code: str, *words: str, room: Room | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a sandbox, in the folder of its room."""
    with tempfile.TemporaryDirectory() as name:
        place = room or room_in(Path(name), RoomLimits(2**30))
        argv = sandbox.command([sys.executable, "-I", "-c", code, *words], place, folder=place.writable[0])
        env = sandbox.environment(place)
        return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def run_as_nobody(kind: str, code: str, *words: str, **limits: Any) -> subprocess.CompletedProcess[str]:
    """The same by a user without any rights, with the system's Python: ours may lie in the home of root."""
    program = bubblewrap() if kind == "bwrap" else None
    text = (
        "import sys, subprocess, tempfile\nfrom pathlib import Path\n"
        "from winml.modelkit.worker.sandbox import Room, RoomLimits, Sandbox\n"
        f"sandbox = Sandbox({kind!r}, {None if program is None else str(program)!r} and Path({str(program)!r}))\n"
        "with tempfile.TemporaryDirectory() as name:\n"
        "    private, work = Path(name) / 'private', Path(name) / 'work'\n    private.mkdir()\n    work.mkdir()\n"
        f"    room = Room(private, RoomLimits(**{ {'memory_bytes': 2**30, **limits}!r}), writable=(work,))\n"
        f"    argv = sandbox.command([sys.executable, '-I', '-c', {code!r}, *{words!r}], room, folder=work)\n"
        "    done = subprocess.run(argv, env=sandbox.environment(room), stdin=subprocess.DEVNULL)\n"
        "sys.exit(done.returncode)\n"
    )
    who = [str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    return subprocess.run(
        ["setpriv", "--reuid", *who, "/usr/bin/python3", "-c", text], capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "HOME": "/"}, cwd="/",
    )  # fmt: skip


@functools.cache
def nobody_can() -> bool:
    """Whether there is a user without rights and a Python for them."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("setpriv"):
        return False
    return Path("/usr/bin/python3").exists() and run_as_nobody("unshare", "").returncode == 0


_BEGIN = r"""
import ctypes, json, os, signal, socket, sys
given = json.loads(sys.argv[1])
found = {}
def attempt(name, what):
    try:
        found[name] = ["done", str(what())]
    except Exception as error:
        found[name] = ["failed", f"{type(error).__name__}: {error}"]
def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(3)
        s.connect(address)
def write(path):
    with open(path, "a") as stream:
        stream.write("x")
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "refused")
def remount(path):
    call(libc.mount(None, path.encode(), None, ctypes.c_ulong(32 | 4096), None))  # remount, bind
"""
_HARMLESS = r"""
attempt("network", lambda: connect(socket.AF_INET, ("127.0.0.1", given["port"])))
attempt("abstract socket", lambda: connect(socket.AF_UNIX, "\0" + given["socket"]))
attempt("socket file", lambda: connect(socket.AF_UNIX, given["socket"]))
attempt("read secret", lambda: open(given["secret"]).read())
attempt("token", lambda: os.environ["HF_TOKEN"])
attempt("other processes", lambda: os.kill(given["pid"], 0))
"""
_HARMFUL = r"""
attempt("internet", lambda: connect(socket.AF_INET, ("192.0.2.1", 80)))
for path in given["files"]:
    attempt("write " + path, lambda: write(path))
for path in ("/etc/passwd", "/usr/winml-mark", "/etc/winml-mark", "/winml-mark", "/dev/winml-mark",
             "/sys/kernel/mm/ksm/run", "/proc/sys/kernel/core_pattern",
             "/proc/sysrq-trigger", "/proc/self/oom_score_adj", "/root/winml-mark",
             os.path.dirname(os.__file__) + "/winml_mark.py"):
    attempt("write " + path, lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)))
attempt("read shadow", lambda: open("/etc/shadow").read())
attempt("watcher's memory", lambda: open("/proc/1/mem", "rb+"))
attempt("remount", lambda: remount("/usr"))
attempt("unmount", lambda: call(libc.umount2(b"/usr", 2)))
attempt("hostname", lambda: socket.sethostname("mark"))
attempt("device", lambda: os.mknod("device", 0o600 | 0o060000, os.makedev(254, 0)))
attempt("replace home", lambda: os.rename(os.environ["HOME"], os.environ["HOME"] + "-2"))
attempt("replace folder", lambda: os.rename(os.getcwd(), os.getcwd() + "-2"))
os.kill(1, signal.SIGKILL)
os.kill(1, signal.SIGTERM)
def namespace():
    call(libc.unshare(0x10000000 | 0x20000))
    remount("/usr")
attempt("remount in a namespace", namespace)
for name in (".", os.environ["HOME"], os.environ["TMPDIR"], "/dev/shm"):
    attempt("allowed " + name, lambda: write(name + "/mark"))
"""
_END = "print(json.dumps(found))\n"
HARMLESS = _BEGIN + _HARMLESS + _END
ATTEMPTS = _BEGIN + _HARMLESS + _HARMFUL + _END
FORKS = """
import os, sys, time
for _ in range(600):
    if os.fork() == 0:
        time.sleep(60)
time.sleep(60)
print("all")
"""
MEMORY = """
import time
kept = [bytes([1]) * 2**24 for _ in range(60)]
time.sleep(60)
print("all")
"""
SHARED = """
import os, time
kept = bytes([1]) * (3 * 2**26)
children = [os.fork() or (time.sleep(1), os._exit(0)) for _ in range(4)]
for child in children:
    os.waitpid(child, 0)
print("all")
"""
FILES = """
import os
for number in range(200):
    with open("/dev/shm/file", "ab") as stream:
        stream.write(bytes(2**24))
print("all")
"""
SLEEP = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
time.sleep(60)
"""
