"""Real servers and clients for tests of feeds, and a stand-in for `az`."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from winml.modelkit.core.events import Event, OnEvent

TOOLS = Path(tempfile.gettempdir()) / f"winml-test-tools-{os.getuid() if sys.platform != 'win32' else 0}"
PASSWORD_HASH = "$2y$05$abcdefghijklmnopqrstuuHIrMEWpUCQe2YqFR3sXwQ75u4od..9q"
"""bcrypt of `pw`."""


def quiet(_: dict[str, Any]) -> None:
    """Hears events and does nothing."""


def _downloaded(packages: tuple[str, ...], folder: Path) -> bool:
    """Whether packages could be fetched into a folder, by any user and on a machine that has no lists of them yet."""
    download = ["apt-get", "download", *packages]
    if subprocess.run(download, cwd=folder, capture_output=True, timeout=600).returncode == 0:
        return True
    # Lists of our own, since those of the machine need root.
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / "apt" / name).mkdir(parents=True)
    own = {"Dir::State": "state", "Dir::Cache": "cache"}
    options = [f"-o{key}={folder / 'apt' / name}" for key, name in own.items()]
    options += ["-oDir::State::status=/var/lib/dpkg/status", "-oAPT::Sandbox::User="]
    return all(
        subprocess.run([*words, *options], cwd=folder, capture_output=True, timeout=600).returncode == 0
        for words in (["apt-get", "update"], download)
    )


def unpacked(*packages: str) -> Path | None:
    """A folder with Debian packages unpacked into it, fetched once per machine; None when that does not work here."""
    folder = TOOLS / packages[0]
    if folder.is_dir():
        return folder
    if os.environ.get("WINML_TEST_OFFLINE") == "1" or not (shutil.which("apt-get") and shutil.which("dpkg")):
        return None
    TOOLS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS) as name:
        if not _downloaded(packages, Path(name)):
            return None
        for path in Path(name).glob("*.deb"):
            subprocess.run(["dpkg", "-x", path, Path(name) / "root"], check=True, capture_output=True)
        try:
            (Path(name) / "root").rename(folder)
        except OSError:
            assert folder.is_dir()  # another process was faster
    return folder


@functools.cache
def docker_registry() -> Path | None:
    """The program docker-registry; None when it is neither here nor in a package archive that can be reached."""
    found = shutil.which("docker-registry")
    if found:
        return Path(found)
    folder = unpacked("docker-registry")
    program = None if folder is None else folder / "usr/bin/docker-registry"
    return program if program is not None and _runs(program, dict(os.environ)) else None


@functools.cache
def skopeo() -> tuple[Path, dict[str, str]] | None:
    """The program skopeo and the environment it needs; None like above."""
    found = shutil.which("skopeo")
    if found:
        return Path(found), dict(os.environ)
    folder = unpacked("skopeo", "libgpgme11", "libassuan0", "libgpg-error0")
    if folder is None:
        return None
    libraries = {str(path.parent) for path in folder.rglob("*.so*")}
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(libraries))}
    return (folder / "usr/bin/skopeo", env) if _runs(folder / "usr/bin/skopeo", env) else None


def _runs(program: Path, env: dict[str, str]) -> bool:
    """Whether a program starts here: one that was unpacked may lack a library."""
    return subprocess.run([program, "--version"], env=env, capture_output=True, timeout=60).returncode == 0


class RegistryServer:
    """A docker-registry on 127.0.0.1; it may be killed and started again on the same port."""

    def __init__(self, folder: Path, *, auth: str = "", storage: Path | None = None) -> None:
        self.folder = folder
        self.storage = storage or folder / "storage"
        self._auth = auth
        self._address = "127.0.0.1:0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        program = docker_registry()
        assert program is not None
        config = self.folder / "config.yml"
        config.write_text(
            f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {self.storage}\n  delete:\n    enabled: true\n"
            f"http:\n  addr: {self._address}\n{self._auth}"
        )
        log = self.folder / "registry.log"
        with log.open("wb") as stream:
            self._process = subprocess.Popen([program, "serve", config], stdout=stream, stderr=stream)
        deadline = time.monotonic() + 30
        while not (found := re.search(r"listening on (127\.0\.0\.1:\d+)", log.read_text())):
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        self._address = found[1]

    @property
    def host(self) -> str:
        return self._address

    @property
    def address(self) -> str:
        return f"oci://{self._address}/models"

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def blob_file(self, digest: str) -> Path:
        hexadecimal = digest.removeprefix("sha256:")
        return self.storage / f"docker/registry/v2/blobs/sha256/{hexadecimal[:2]}/{hexadecimal}/data"


STAND_IN_AZ = Path(__file__).with_name("stand_in_az.py")


class StandInAz:
    """An `az` on the path whose account, feed and moods are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        (folder / "feed").mkdir()
        if sys.platform == "win32":  # a batch file, as the real one is there
            (folder / "bin" / "az.cmd").write_text(f'@"{sys.executable}" "{STAND_IN_AZ}" %*\r\n')
        else:
            program = folder / "bin" / "az"
            program.write_text(f"#!{sys.executable}\n" + STAND_IN_AZ.read_text())
            program.chmod(0o755)
        self.mood("")

    def mood(self, word: str) -> None:
        """How the next calls behave; the words are those of `stand_in_az.py`."""
        (self.folder / "mood").write_text(word)

    @property
    def calls(self) -> list[str]:
        """All calls so far, as lines."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def environment(self) -> dict[str, str]:
        return {"STAND_IN_AZ": str(self.folder), "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def filled(folder: Path, **files: bytes) -> Path:
    """A folder with files; `__` in a keyword is a folder, the names end in `.bin`."""
    for name, content in files.items():
        path = folder / (name.replace("__", "/") + ".bin")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def once(kind: type[Event], action: Callable[[], object]) -> OnEvent:
    """Hears events and acts at the first of a kind."""
    done: list[int] = []

    def on_event(heard: Event) -> None:
        if isinstance(heard, kind) and not done:
            done.append(1)
            action()

    return on_event
