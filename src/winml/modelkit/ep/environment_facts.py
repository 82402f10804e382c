"""Reads what `problems` judges: packages with their metadata, how to install more, folders that are written to."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.location import cache_root
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.ep import catalog
from winml.modelkit.ep.packages import Distribution, list_distributions
from winml.modelkit.ep.problems import LEAST_FREE, OURS, EnvironmentFacts, Installer, Place
from winml.modelkit.ep.requirements import Requirement, parse_requirement
from winml.modelkit.store import atomic

_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")
"""In the order in which Python tries them."""


def read_environment_facts() -> EnvironmentFacts:
    """What there is to know about the environment that this process runs in."""
    distributions = list_distributions(sys.path)
    temporary, refused = _read_temporary()
    return EnvironmentFacts(
        distributions=distributions,
        requirements=_read_requirements(distributions),
        installer=choose_installer(distributions, sys.executable, shutil.which),
        cache=read_place(cache_root()),
        temporary=temporary,
        refused_temporary=refused,
        spare_folder=_find_spare_folder(),
        windows=sys.platform == "win32",
    )


def _read_requirements(distributions: Iterable[Distribution]) -> dict[str, tuple[Requirement, ...]]:
    packages = {package.distribution for info in catalog.TABLE for package in info.packages}
    found: dict[str, tuple[Requirement, ...]] = {}
    for name in dict.fromkeys(d.name for d in distributions if d.name == OURS or d.name in packages):
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # a metadata folder without a METADATA file, as an interrupted installation leaves it
        found[name] = tuple(r for r in map(parse_requirement, lines) if r is not None)
    return found


def choose_installer(
    distributions: Iterable[Distribution], executable: str, which: Callable[[str], str | None]
) -> Installer:
    """How to call what installs packages into the environment of an interpreter.

    Without pip, as uv makes environments, it is uv; otherwise Python brings pip along.
    """
    python = next((name for name in ("python", "python3") if _is_same(which(name), executable)), None)
    if python is None:
        python = shell_word(executable)
        if python.startswith('"'):
            python = f"& {python}"  # PowerShell takes a quoted word for a value, not for a program
    pip = Installer(f"{python} -m pip install", f"{python} -m pip uninstall -y")
    if any(found.name == "pip" for found in distributions):
        return pip
    if which("uv") is not None:
        where = f"--python {shell_word(executable)}"
        return Installer(f"uv pip install {where}", f"uv pip uninstall {where}")
    return Installer(pip.install, pip.uninstall, first=(f"{python} -m ensurepip",))


def _is_same(found: str | None, executable: str) -> bool:
    """Whether two names of an interpreter are the same one in the same environment."""
    if found is None:
        return False
    first, second = Path(found).absolute(), Path(executable).absolute()
    # A virtual environment has one version of Python, which may be there as several copies.
    is_one = (first.parent.parent / "pyvenv.cfg").is_file() or first.resolve() == second.resolve()
    return first.parent == second.parent and is_one


def read_place(path: Path) -> Place:
    """Whether a folder can be written to, by writing there, and how much space is left."""
    try:
        atomic.check_place(path)
    except ModelkitError as error:
        return Place(str(path), error.message.removeprefix(f"cannot write `{path}`: "))
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    return Place(str(path), None, shutil.disk_usage(existing).free)


def _read_temporary() -> tuple[Place | None, dict[str, Place]]:
    """The folder that Python uses for temporary files, and the variables that name one which it cannot use."""
    try:
        used = tempfile.gettempdir()
    except OSError:
        used = None
    refused: dict[str, Place] = {}
    for variable in _TEMPORARY_VARIABLES:
        named = os.environ.get(variable)
        if not named:
            continue
        path = Path(named)
        if used is not None and path.is_dir() and path.samefile(used):
            break  # the first that can be used is used
        refused[variable] = read_place(path) if path.is_dir() else Place(named, "there is no such folder")
    return None if used is None else read_place(Path(used)), refused


def _find_spare_folder() -> str | None:
    """A folder of the user that can be written to and has space."""
    candidates = [Path(home) for variable in ("HOME", "USERPROFILE") if (home := os.environ.get(variable))]
    for folder in (*candidates, Path.cwd()):
        if folder.is_dir():
            place = read_place(folder)
            if place.error is None and (place.free_bytes or 0) >= LEAST_FREE:
                return str(folder.absolute())
    return None
