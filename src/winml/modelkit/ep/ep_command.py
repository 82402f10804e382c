"""`winml ep`: private environments for execution providers that have their own build of onnxruntime."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import EPInfo, Package
from winml.modelkit.ep.devices import DownloadProgress, EPAnswer, WindowsMLProvider
from winml.modelkit.ep.discovery import Host, this_host
from winml.modelkit.ep.environments import (
    MANIFEST,
    EnvironmentManifest,
    environments_in,
    environments_root,
    python_in,
    read_environment,
)
from winml.modelkit.ep.openvino import openvino_inside
from winml.modelkit.store import atomic
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.command import Finished, run_command

INSTALL_TIMEOUT_S = 1800.0
PROBE_TIMEOUT_S = 120.0
READERS = ("tokenizers", "pillow")

OnStep = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class InstalledEnvironment:
    """A private environment and what it takes on the disk."""

    ep: str
    distribution: str
    version: str
    folder: str
    tracer: str | None
    bytes: int


@dataclass(frozen=True, kw_only=True)
class EnvironmentsResult:
    schema: Literal["winml/ep/1"] = "winml/ep/1"
    ok: Literal[True] = True
    action: Literal["install", "list", "remove"]
    environments: tuple[InstalledEnvironment, ...]
    windows_ml: WindowsMLProvider | None
    """What Windows ML made ready, for `install`."""


def _find_bundled(info: EPInfo, host: Host) -> Package:
    """The package of an EP that needs an environment of its own."""
    bundled = [p for p in info.packages if p.kind == "bundled"]
    if not bundled:
        kinds = {p.kind for p in info.packages}
        how = "it is part of onnxruntime" if kinds == {"builtin"} else f"`pip install {info.packages[0].distribution}`"
        if kinds == {"windowsml"} and host.system == "Windows":
            how += f", then `winml ep install {info.name}`"
        raise RequestError(f"execution provider `{info.name}` needs no private environment", hint=how)
    for package in bundled:
        if host.system in package.systems and (not package.machines or host.machine in package.machines):
            return package
    raise UnavailableError(f"`{bundled[0].distribution}` does not exist for {host.system} {host.machine}")


def _step(argv: list[str], folder: Path, what: str) -> Finished:
    done = run_command(argv, cwd=folder, log=folder / "install.log", timeout_s=INSTALL_TIMEOUT_S)
    if not done.ok:
        how = "took too long" if done.returncode is None else f"ended with exit code {done.returncode}"
        raise UnavailableError(
            f"{what} {how}", hint="the last lines say why; check the package index", details={"log": done.tail()}
        )
    return done


def _pip(folder: Path, wanted: str, on_step: OnStep) -> None:
    on_step(f"installing {wanted}")
    pip = [str(python_in(folder)), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", wanted]
    _step(pip, folder, f"installing `{wanted}`")


def _add_tracer(folder: Path, package: Package, on_step: OnStep) -> str | None:
    """Install what traces the EP's operators, in the version of the libraries in the EP; returns what was installed."""
    if package.tracer is None:
        return None
    version = openvino_inside(folder)
    if version is None:
        on_step(f"`{package.distribution}` does not report its OpenVINO version; operators cannot be traced")
        return None
    wanted = f"{package.tracer}=={version}"
    _pip(folder, wanted, on_step)
    return wanted


def _add_readers(folder: Path, on_step: OnStep) -> None:
    """Install what winml reads texts and images with here: a model in the environment is given them as well."""
    for name in READERS:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # winml does not read such data here either
        _pip(folder, f"{name}=={version}", on_step)


def _fill(folder: Path, info: EPInfo, package: Package, version: str | None, on_step: OnStep) -> EnvironmentManifest:
    """Make the virtual environment and install the package; returns its manifest."""
    on_step("creating a virtual environment")
    _step([sys.executable, "-m", "venv", str(folder)], folder, "`python -m venv`")
    wanted = f"{package.distribution}=={version}" if version else package.distribution
    _pip(folder, wanted, on_step)
    tracer = _add_tracer(folder, package, on_step)
    _add_readers(folder, on_step)
    on_step("testing it")
    args = {"ep": info.name, "distribution": package.distribution}
    with Worker(python=str(python_in(folder))) as worker:
        answer = worker.ask(EPAnswer, "session.probe", args, timeout_s=PROBE_TIMEOUT_S, what=f"loading {wanted}")
    if answer.kinds == ():
        raise UnavailableError(f"`{wanted}` has no `{info.full_name}` that works on this machine")
    return EnvironmentManifest(
        ep=info.name, distribution=package.distribution, version=str(answer.version), tracer=tracer
    )


def _in_windows_ml(info: EPInfo, host: Host) -> bool:
    """Whether the catalog of Windows ML may have an EP on this machine."""
    return any(
        p.kind == "windowsml" and host.system in p.systems and p.module in host.module_dirs for p in info.packages
    )


def _download(info: EPInfo, on_step: OnStep) -> WindowsMLProvider:
    """Have Windows download an EP of its catalog; the system keeps and updates it, so there is no environment."""
    on_step(f"asking Windows ML for `{info.name}`; it may download hundreds of megabytes")
    shown = 0

    def on_event(event: DownloadProgress) -> None:
        nonlocal shown
        if int(event.part * 10) > shown:
            shown = int(event.part * 10)
            on_step(f"{shown * 10} % of `{info.name}`")

    with Worker() as worker:
        found = worker.ask(
            WindowsMLProvider,
            "session.download",
            {"ep": info.name},
            timeout_s=INSTALL_TIMEOUT_S,
            events=DownloadProgress,
            on_event=on_event,
            what=f"downloading {info.name}",
        )
    on_step(f"`{info.name}` is {'downloaded' if found.downloaded else 'already installed'}")
    return found


def install(ep: str, *, version: str | None, reinstall: bool, on_step: OnStep) -> EnvironmentsResult:
    """Install an EP: from Windows ML where that is installed, otherwise in a private environment.

    An environment appears whole, or not at all.
    """
    info = catalog.find(ep)
    host = this_host()
    if version is None and _in_windows_ml(info, host):
        return _result("install", _download(info, on_step))
    package = _find_bundled(info, host)
    root = environments_root()
    atomic.make_folder(root)
    final = root / info.name
    lock = FileLock(root / f".{info.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UnavailableError(f"`{info.name}` is being installed by another process") from error
    staging = root / f".staging-{info.name}-{os.getpid()}"
    try:
        if read_environment(final) is not None and not reinstall:
            raise RequestError(f"`{info.name}` is already installed", hint="`--rebuild` installs it again")
        _sweep(root, info.name)
        staging.mkdir()
        found = _fill(staging, info, package, version, on_step)
        atomic.write_bytes(staging / MANIFEST, json.dumps(to_json(found), indent=2).encode())
        if final.exists():
            atomic.move(final, root / f".staging-{info.name}-old-{os.getpid()}")
        atomic.move(staging, final)
        _sweep(root, info.name)
    except OSError as error:
        raise atomic.write_error(error, final) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        lock.release()
    return _result("install")


def _sweep(root: Path, ep: str) -> None:
    """Remove what an installer that was killed left; we hold the lock, so no other process works there."""
    for folder in root.glob(f".staging-{ep}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def list_environments() -> EnvironmentsResult:
    """All private environments."""
    return _result("list")


def remove(ep: str) -> EnvironmentsResult:
    """Delete an EP's private environment; first its manifest, so that it is gone at once."""
    info = catalog.find(ep)
    folder = environments_root() / info.name
    if not folder.exists():
        raise RequestError(f"`{info.name}` has no private environment", hint="`winml ep list` lists them")
    atomic.remove(folder / MANIFEST)
    _sweep(environments_root(), info.name)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise atomic.write_error(error, folder) from error
    return _result("remove")


def _result(
    action: Literal["install", "list", "remove"], windows_ml: WindowsMLProvider | None = None
) -> EnvironmentsResult:
    found = tuple(
        InstalledEnvironment(
            ep=one.ep,
            distribution=one.distribution,
            version=one.version,
            folder=str(one.folder),
            tracer=one.tracer,
            bytes=sum(p.lstat().st_size for p in one.folder.rglob("*") if not p.is_dir()),
        )
        for one in environments_in(environments_root())
    )
    return EnvironmentsResult(action=action, environments=found, windows_ml=windows_ml)
