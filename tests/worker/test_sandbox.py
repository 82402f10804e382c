"""What programs in a sandbox cannot do, tried by programs that do try, as root and as nobody."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import sandbox_zoo
from winml.modelkit.worker.sandbox import ENDED, RoomLimits, Sandbox

KINDS = [
    pytest.param("unshare", marks=pytest.mark.sandbox),
    pytest.param("bwrap", marks=pytest.mark.bubblewrap),
]
AS_NOBODY = [
    pytest.param("unshare", marks=[pytest.mark.sandbox, pytest.mark.nobody]),
    pytest.param("bwrap", marks=[pytest.mark.bubblewrap, pytest.mark.nobody]),
]


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A user's machine: servers that listen, files, a secret, a token."""
    home = tmp_path / "home"
    (home / "cache").mkdir(parents=True)
    (home / "secret").write_text("secret")
    (home / "notes").write_text("")
    tmp_path.chmod(0o755)
    monkeypatch.setenv("HF_TOKEN", "secret")
    address = f"/tmp/winml-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as plain,
        socket.socket(socket.AF_UNIX) as hidden,
    ):
        plain.bind(address)
        hidden.bind("\0" + address)
        for listening in (server, plain, hidden):
            listening.listen()
            listening.settimeout(0)
        files = [str(home / "notes"), str(home / "cache" / "entry"), str(Path.home() / "winml-mark")]
        yield {
            "port": server.getsockname()[1], "socket": address, "files": files, "secret": str(home / "secret"),
            "pid": os.getpid(),
        }  # fmt: skip
        for listening in (server, plain, hidden):
            with pytest.raises(BlockingIOError):
                listening.accept()
    Path(address).unlink()
    assert (home / "notes").read_text() == ""
    assert list((home / "cache").iterdir()) == []
    for mark in (Path.home() / "winml-mark", Path("/usr/winml-mark"), Path("/root/winml-mark")):
        assert not mark.exists()


def _judge(done: subprocess.CompletedProcess[str]) -> None:
    """Everything that is allowed was done, and nothing else."""
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 25
    assert [name for name, (how, _) in found.items() if (how == "done") != name.startswith("allowed ")] == [], found


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_reaches_no_network_no_files_and_no_rights(kind: str, outside: dict[str, Any]) -> None:
    _judge(sandbox_zoo.run(sandbox_zoo.of_kind(kind), sandbox_zoo.ATTEMPTS, json.dumps(outside)))


@pytest.mark.parametrize("kind", AS_NOBODY)
def test_nor_does_one_of_a_user_without_rights(kind: str, outside: dict[str, Any]) -> None:
    _judge(sandbox_zoo.run_as_nobody(kind, sandbox_zoo.ATTEMPTS, json.dumps(outside)))


@pytest.mark.posix("the attempts are those of Linux")
def test_without_a_sandbox_the_same_attempts_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    (tmp_path / "secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind(f"\0/tmp/winml-test-{os.getpid()}")
        hidden.listen()
        given = {"port": server.getsockname()[1], "secret": str(tmp_path / "secret"), "pid": os.getpid()}
        given["socket"] = f"/tmp/winml-test-{os.getpid()}"
        argv = [sys.executable, "-I", "-c", sandbox_zoo.HARMLESS, json.dumps(given)]
        found = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert [name for name, (how, _) in found.items() if how != "done"] == ["socket file"], "which is not there"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("code", "limits", "told"),
    [
        (sandbox_zoo.FORKS, RoomLimits(2**30, processes=100), "processes and threads; 100 are allowed"),
        (sandbox_zoo.MEMORY, RoomLimits(2**28), "MiB of memory; 256 MiB are allowed"),
        (sandbox_zoo.SLEEP, RoomLimits(2**28, seconds=0.5), "it takes longer than 0.5 s"),
    ],
    ids=["forks", "memory", "sleep"],
)
def test_a_program_that_takes_too_much_is_ended(
    kind: str, code: str, limits: RoomLimits, told: str, tmp_path: Path
) -> None:
    mark = f"winml-test-{tmp_path}"  # not the one of the same test in another process
    done = sandbox_zoo.run(sandbox_zoo.of_kind(kind), code, mark, room=sandbox_zoo.room_in(tmp_path, limits))
    assert "all" not in done.stdout
    # The kernel counts the processes of everybody but root, and may be quicker.
    if "Resource temporarily unavailable" not in done.stderr:
        assert done.stderr.splitlines()[-1].startswith(ENDED), done.stderr
        assert told in done.stderr
        assert done.returncode == 137
    assert _named(mark) == []


@pytest.mark.parametrize("kind", KINDS)
def test_memory_that_processes_share_counts_once(kind: str, tmp_path: Path) -> None:
    room = sandbox_zoo.room_in(tmp_path, RoomLimits(2**28))
    done = sandbox_zoo.run(sandbox_zoo.of_kind(kind), sandbox_zoo.SHARED, room=room)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr


@pytest.mark.parametrize("kind", AS_NOBODY)
def test_the_kernel_counts_the_processes_of_a_user_without_rights(kind: str) -> None:
    done = sandbox_zoo.run_as_nobody(kind, sandbox_zoo.FORKS, processes=100)
    assert done.returncode != 0
    assert "all" not in done.stdout
    # Before Linux 5.14 it counts all processes of a user, so that we do it.
    version = tuple(int(word) for word in os.uname().release.split("-")[0].split(".")[:2])
    assert ("Resource temporarily unavailable" if version >= (5, 14) else ENDED) in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_files_in_memory_have_an_end(kind: str, tmp_path: Path) -> None:
    done = sandbox_zoo.run(
        sandbox_zoo.of_kind(kind), sandbox_zoo.FILES, room=sandbox_zoo.room_in(tmp_path, RoomLimits(2**28))
    )
    assert "No space left" in done.stderr
    assert "all" not in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_sandbox_ends_with_who_started_it(kind: str, tmp_path: Path) -> None:
    program = None if kind == "unshare" else sandbox_zoo.bubblewrap()
    code = (
        "import subprocess, sys\nfrom pathlib import Path\nfrom winml.modelkit.worker.sandbox import *\n"
        f"room = Room(Path({str(tmp_path)!r}), RoomLimits(2**28))\n"
        f"sandbox = Sandbox({kind!r}, {None if program is None else str(program)!r})\n"
        f"argv = sandbox.command([sys.executable, '-I', '-c', {sandbox_zoo.SLEEP!r}, 'winml-orphan'], room, "
        "folder=Path(chr(47)))\n"
        "subprocess.run(argv, env=sandbox.environment(room), start_new_session=True)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    _wait(lambda: len([line for line in _named("winml-orphan") if "sandbox_init" not in " ".join(line)]) == 2)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _wait(lambda: _named("winml-orphan") == [])


@pytest.mark.sandbox
def test_paths_through_links_lead_where_they_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model.bin").write_text("model")
    (tmp_path / "models" / "other.bin").write_text("not asked for")
    (tmp_path / "link").symlink_to("models")
    (tmp_path / "file.bin").symlink_to(tmp_path / "link" / "model.bin")
    (tmp_path / "room").mkdir()
    links = tmp_path / "file.bin", tmp_path / "link" / "model.bin"
    room = sandbox_zoo.room_in(tmp_path / "room", RoomLimits(2**30), *links)
    code = "import sys\nfor path in sys.argv[1:]: print(open(path).read())"
    sandbox = Sandbox("unshare")
    paths = [str(path) for path in (*room.readable, tmp_path / "models" / "model.bin")]
    done = sandbox_zoo.run(sandbox, code, *paths, room=room)
    assert done.stdout.split() == ["model"] * 3, done.stderr
    done = sandbox_zoo.run(sandbox, code, str(tmp_path / "models" / "other.bin"), room=room)
    assert "No such file" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_program_leaves_behind_leads_the_next_one_nowhere(kind: str, tmp_path: Path) -> None:
    """Links in its temporary folder, where places for mounts are made again."""
    victim = tmp_path / "victim"
    victim.mkdir()
    model = tmp_path / "models" / "model.bin"
    model.parent.mkdir()
    model.write_text("model")
    (tmp_path / "room").mkdir()
    room = sandbox_zoo.room_in(tmp_path / "room", RoomLimits(2**30), model)
    code = (
        "import os, sys\nprint(open(sys.argv[1]).read())\n"
        "places = [os.open(place, 0) for place in (os.environ['TMPDIR'], os.environ['HOME'], '.')]\n"
        "for place in places:\n"
        "    for name in {*os.listdir(place), 'tmp', 'home', 'root', 'private', 'mark', *sys.argv[1].split('/')[1:]}:\n"
        "        try: os.rename(name, name + '-2', src_dir_fd=place, dst_dir_fd=place)\n"
        "        except OSError: pass\n"
        f"        os.symlink({str(victim)!r}, name, dir_fd=place)\n"
    )
    for _ in range(2):
        done = sandbox_zoo.run(sandbox_zoo.of_kind(kind), code, str(model), room=room)
        assert done.stdout.split() == ["model"], done.stderr
        for place in (room.private / "home", room.writable[0]):
            for path in place.iterdir():
                assert path.is_symlink()
                path.unlink()
    assert list(victim.iterdir()) == []


@pytest.mark.sandbox
def test_where_no_sandbox_can_be_made_that_is_said() -> None:
    """A sandbox is such a place."""
    code = (
        f"import sys\nsys.path.insert(0, {str(sandbox_zoo.SOURCE)!r})\n"
        "from winml.modelkit.worker.sandbox import find_sandbox\n"
        "from winml.modelkit.core.errors import UnavailableError\n"
        "try:\n    print(find_sandbox())\nexcept UnavailableError as error:\n    print(error.exit_code, error.message)"
    )
    done = sandbox_zoo.run(Sandbox("unshare"), code)
    assert done.stdout.startswith("3 no sandbox works on this machine: "), done.stdout + done.stderr
    assert "unshare: sandbox: cannot be set up" in done.stdout


def _named(word: str) -> list[list[str]]:
    """Command lines of processes that name the word."""
    lines = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return [line for line in lines if line and line[-1] == word]


def _wait(until: Any) -> None:
    deadline = time.monotonic() + 30
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.02)
