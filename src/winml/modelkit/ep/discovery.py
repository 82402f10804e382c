"""Which execution providers are installed, and why the others are not; finds files, loads nothing.

Whether a library really loads and has a device is asked in a worker (`session.ep_registry`).
"""

from __future__ import annotations

import platform
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Device
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import EPInfo, Package, System
from winml.modelkit.ep.environments import PrivateEnvironment, environments_in, environments_root
from winml.modelkit.ep.packages import list_distributions


@dataclass(frozen=True)
class Host:
    """The system, its machine and where its Python packages lie."""

    system: System
    machine: str
    module_dirs: dict[str, Path] = field(default_factory=dict)
    """Folder of each installed module an EP may come from."""
    distributions: frozenset[str] = frozenset()
    """Normalised names of the distributions installed beside onnxruntime."""
    environments: tuple[PrivateEnvironment, ...] = ()
    """Private environments with bundled EPs, made by `winml ep install`."""


def _module_dir(module: str) -> Path | None:
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def this_host() -> Host:
    """The machine this process runs on."""
    modules = sorted({package.module for info in catalog.TABLE for package in info.packages})
    dirs = {module: folder for module in modules if (folder := _module_dir(module)) is not None}
    beside = [str(dirs["onnxruntime"].parent)] if "onnxruntime" in dirs else []
    names = frozenset(found.name for found in list_distributions(beside))
    environments = tuple(environments_in(environments_root()))
    return Host(cast("System", platform.system()), platform.machine().lower(), dirs, names, environments)


@dataclass(frozen=True)
class Installed:
    """An installed EP: from which package, and its library where it is a plugin."""

    ep: str
    package: Package
    library: Path | None
    simulated: tuple[Device, ...] = ()
    environment: PrivateEnvironment | None = None
    """The private environment it is in; None for the one this program runs in."""

    @property
    def python(self) -> str | None:
        """The interpreter of its private environment."""
        return None if self.environment is None else str(self.environment.python)


@dataclass(frozen=True)
class Rejected:
    """An EP that is not installed, with the reason and how to install it."""

    ep: str
    reason: str
    hint: str | None


def find_simulators(info: EPInfo, host: Host) -> tuple[Device, ...]:
    """Devices that exist on this host only as a simulator inside the EP's package."""
    return tuple(d for d, where in info.simulated_on.items() if (host.system, host.machine) in where)


def _fits(package: Package, host: Host) -> bool:
    return host.system in package.systems and (not package.machines or host.machine in package.machines)


_NOT_INSTALLED = "is not installed"
_BROKEN = "lacks its library"
_ARCHITECTURES = {"arm64": ("arm64", "arm64ec"), "aarch64": ("arm64",)}
"""Folders a Windows wheel may keep its libraries in, best first; other machines have a folder of their own name."""


def _library(folder: Path, name: str, machine: str) -> Path | None:
    """An EP's library in its package: beside the module, or in a folder per architecture."""
    for architecture in _ARCHITECTURES.get(machine, (machine,)):
        for path in (folder / name, folder / architecture / name, folder / "libs" / architecture / name):
            if path.is_file():
                return path
    return None


def _try_package(info: EPInfo, package: Package, host: Host) -> Installed | str:
    """The EP from this package, or why it does not provide it, as a phrase that follows its name."""
    folder = host.module_dirs.get(package.module)
    if folder is None:
        return _NOT_INSTALLED
    if package.kind == "bundled" and package.distribution not in host.distributions:
        return _NOT_INSTALLED
    library: Path | None = None
    if package.kind == "plugin":
        name = info.libraries.get(host.system)
        if name is None:
            return f"has no library for {host.system}"
        library = _library(folder, name, host.machine)
        if library is None:
            return f"{_BROKEN} `{name}`"
    return Installed(info.name, package, library, find_simulators(info, host))


def _how_to_install(info: EPInfo, fitting: list[Package], *, again: bool) -> str:
    best = fitting[0]
    if best.kind == "bundled":
        return f"install it with `winml ep install {info.name}`"
    wanted = f'"winml-modelkit[{best.extra}]"' if best.extra else best.distribution
    own = f" or `winml ep install {info.name}`" if any(p.kind == "bundled" for p in fitting) else ""
    force = "--force-reinstall " if again else ""
    return f"install it with `pip install {force}{wanted}`{own}"


def _in_environments(info: EPInfo, host: Host) -> list[Installed]:
    found = []
    for environment in host.environments:
        package = next((p for p in info.packages if p.distribution == environment.distribution), None)
        if environment.ep == info.name and package is not None:
            found.append(Installed(info.name, package, None, (), environment))
    return found


def candidates(info: EPInfo, host: Host) -> tuple[Installed, ...] | Rejected:
    """Every installation of the EP on this machine, this environment's first; or why there is none."""
    fitting = [p for p in info.packages if _fits(p, host)]
    if not fitting:
        where = sorted({f"{s} {p.machines[0]}" if p.machines else s for p in info.packages for s in p.systems})
        return Rejected(info.name, f"exists for {' and '.join(where)}, not for {host.system} {host.machine}", None)
    reasons: dict[str, list[str]] = {}
    found: list[Installed] = []
    for package in fitting:
        answer = _try_package(info, package, host)
        if isinstance(answer, Installed):
            found.append(answer)
        else:
            reasons.setdefault(answer, []).append(f"`{package.distribution}`")
    found += _in_environments(info, host)
    if found:
        return tuple(found)
    reason = "; ".join(f"{' or '.join(names)} {why}" for why, names in reasons.items())
    broken = any(why.startswith(_BROKEN) for why in reasons)
    return Rejected(info.name, reason, _how_to_install(info, fitting, again=broken))


def look_for(info: EPInfo, host: Host, distribution: str | None = None) -> Installed | Rejected:
    """The EP in this environment, from the first package that provides it or from the one named."""
    found = candidates(info, host)
    if isinstance(found, Rejected):
        return found
    for installed in found:
        if installed.environment is None and distribution in (None, installed.package.distribution):
            return installed
    return Rejected(info.name, f"`{distribution or info.name}` is not installed in this environment", None)


def distribution_version(package: Package) -> str | None:
    """The installed version of a package's distribution in this environment, None when its metadata is not there."""
    folder = _module_dir(package.module)
    beside = () if folder is None else list_distributions([str(folder.parent)])
    return next((found.version for found in beside if found.name == package.distribution), None)
