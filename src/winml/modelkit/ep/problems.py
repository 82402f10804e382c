"""What is wrong with an environment, and the commands that mend it: pure functions over what was read from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from winml.modelkit.core import plain_text
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.ep import catalog
from winml.modelkit.ep.packages import Distribution
from winml.modelkit.ep.requirements import Requirement, fits_versions, join_clauses

OURS = "winml-modelkit"
RUNTIME = "onnxruntime"
TORCH = "torch==2.13.0"
"""Installed by this pin before the extra `hf`: a range pulls gigabytes of GPU libraries."""
LEAST_FREE = 2**30
"""Bytes: a build of a small model and its stages in the cache."""
LEAST_FREE_TEMPORARY = 2**28

_RUNTIMES = {p.distribution: info.name for info in catalog.TABLE for p in info.packages if p.module == RUNTIME}
"""Distributions whose files are all in the folder `onnxruntime`, with the EP for which one installs them."""

_EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "hf": (("torch", "transformers"), "Hugging Face models cannot be exported"),
    "vision": (("pillow",), "images cannot be read for calibration and evaluation"),
    "text": (("tokenizers",), "texts cannot be read for calibration and evaluation"),
    "feeds": (("httpx",), "OCI registries cannot be used as feeds"),
}
"""Extra -> what it installs, and what is not possible without that."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something that is wrong, why, and the commands that mend it."""

    what: str
    why: str
    commands: tuple[str, ...]
    """To be run one after the other."""
    optional: bool = False
    """Nothing is broken: something that not everybody needs is not installed."""


@dataclass(frozen=True)
class Place:
    """A folder that commands write to."""

    path: str
    error: str | None = None
    """Why nothing can be written there; None when it can."""
    free_bytes: int | None = None


@dataclass(frozen=True)
class Installer:
    """How packages are installed into this environment."""

    install: str
    uninstall: str
    first: tuple[str, ...] = ()
    """What has to be run before."""


@dataclass(frozen=True)
class EnvironmentFacts:
    """What was read from an environment."""

    distributions: tuple[Distribution, ...]
    requirements: Mapping[str, tuple[Requirement, ...]]
    """What winml and the packages of EPs ask for, by distribution; empty where metadata is not there."""
    installer: Installer
    cache: Place
    temporary: Place | None
    """The folder for temporary files; None when Python finds none."""
    refused_temporary: Mapping[str, Place] = field(default_factory=dict)
    """Variables such as TMPDIR whose folder Python cannot use."""
    spare_folder: str | None = None
    """A folder of the user that can be written to and has space."""
    windows: bool = False

    def first(self, name: str) -> Distribution | None:
        """The distribution that is imported."""
        return next((found for found in self.distributions if found.name == name), None)


def find_problems(facts: EnvironmentFacts) -> tuple[Problem, ...]:
    """Everything that is wrong with an environment, the worst first; what is merely not installed comes last."""
    return (
        *_find_several_runtimes(facts),
        *_find_unmet_requirements(facts),
        *_find_bad_places(facts),
        *_find_missing_extras(facts),
    )


def _quote(word: str, facts: EnvironmentFacts) -> str:
    return plain_text.shell_word(word, windows=facts.windows)


def _install(facts: EnvironmentFacts, *words: str) -> str:
    return " ".join((facts.installer.install, *(_quote(word, facts) for word in words)))


def _find_several_runtimes(facts: EnvironmentFacts) -> Iterator[Problem]:
    """Distributions of onnxruntime in one folder, where each has overwritten files of the others."""
    for folder in dict.fromkeys(found.folder for found in facts.distributions):
        runtimes = [d for d in facts.distributions if d.folder == folder and d.name in _RUNTIMES]
        extra = [d.name for d in runtimes if d.name != RUNTIME]
        if not extra:
            continue
        listed = " and ".join(f"{d.name} {d.version}" for d in runtimes)
        if len(runtimes) > 1:
            what = f"{listed} are installed at once"
            why = "both consist of the folder `onnxruntime`: the last one installed has overwritten files of the other"
        else:
            what = f"{listed} is installed instead of {RUNTIME}"
            why = f"winml needs {RUNTIME}; other builds of it have their own environments"
        yield Problem(
            what=what,
            why=why,
            commands=(
                *facts.installer.first,
                f"{facts.installer.uninstall} {' '.join(d.name for d in runtimes)}",
                _install(facts, _describe_package(facts, RUNTIME)),
                *(f"winml ep install {_RUNTIMES[name]}" for name in extra),
            ),
        )


def _describe_package(facts: EnvironmentFacts, name: str) -> str:
    """A package with all that winml and EPs ask of its version."""
    clauses = [r.versions for lines in facts.requirements.values() for r in lines if _is_checked(r) and r.name == name]
    return name + join_clauses(clauses)


def _is_checked(requirement: Requirement) -> bool:
    return requirement.extra != "dev"


def _find_unmet_requirements(facts: EnvironmentFacts) -> Iterator[Problem]:
    """Packages that winml needs and that are missing, or in a version that winml or an EP does not work with."""
    ours = [r for r in facts.requirements.get(OURS, ()) if _is_checked(r)]
    for name in dict.fromkeys(r.name for r in ours):
        found = facts.first(name)
        if found is None:
            is_needed = any(r.name == name and not r.is_conditional for r in ours)
            # A build of the runtime in its place is a problem of its own, with its own commands.
            if is_needed and not (name == RUNTIME and any(d.name in _RUNTIMES for d in facts.distributions)):
                yield Problem(
                    what=f"{name} is not installed",
                    why="winml does not work without it",
                    commands=(*facts.installer.first, _install(facts, _describe_package(facts, name))),
                )
            continue
        unmet = {
            owner: requirement.versions
            for owner, lines in facts.requirements.items()
            for requirement in lines
            if requirement.name == name
            and _is_checked(requirement)
            and (owner == OURS or facts.first(owner) is not None)
            and not fits_versions(found.version, requirement.versions)
        }
        if unmet:
            yield Problem(
                what=f"{name} {found.version} is not a version that works here",
                why=" and ".join(f"{owner} needs {name}{versions}" for owner, versions in unmet.items()),
                commands=(*facts.installer.first, _install(facts, "--upgrade", _describe_package(facts, name))),
            )


def _find_missing_extras(facts: EnvironmentFacts) -> Iterator[Problem]:
    for extra, (names, what) in _EXTRAS.items():
        missing = [name for name in names if facts.first(name) is None]
        if missing:
            pinned = [_install(facts, TORCH)] if "torch" in missing else []
            yield Problem(
                what=what,
                why=f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
                commands=(*facts.installer.first, *pinned, _install(facts, f"{OURS}[{extra}]")),
                # Half of an extra is an installation that was interrupted or undone.
                optional=len(missing) == len(names),
            )


def _find_bad_places(facts: EnvironmentFacts) -> Iterator[Problem]:
    cache, temporary = facts.cache, facts.temporary
    if cache.error is not None:
        yield Problem(
            what=f"the cache folder `{cache.path}` cannot be written to",
            why=cache.error,
            commands=_use_other_folder(facts, "WINML_CACHE", "winml-cache"),
        )
    elif cache.free_bytes is not None and cache.free_bytes < LEAST_FREE:
        yield Problem(
            what=f"the disk of the cache folder `{cache.path}` is nearly full",
            why=f"{cache.free_bytes / 2**20:,.0f} MiB are free; stages of a build need more",
            # A spare folder has space, so it is on another disk.
            commands=_use_other_folder(facts, "WINML_CACHE", "winml-cache") or ("winml cache gc --max-size 1G",),
        )
    for variable, place in facts.refused_temporary.items():
        yield Problem(
            what=f"`{variable}` names the folder `{place.path}`, which cannot be used for temporary files",
            why=place.error or "Python has chosen another one",
            commands=_use_other_folder(facts, variable, "winml-tmp"),
        )
    if temporary is None or temporary.error is not None:
        if not facts.refused_temporary:
            yield Problem(
                what="there is no folder for temporary files",
                why=(temporary.error if temporary else None) or "none of the usual ones can be written to",
                commands=_use_other_folder(facts, "TMPDIR", "winml-tmp"),
            )
    elif temporary.free_bytes is not None and temporary.free_bytes < LEAST_FREE_TEMPORARY:
        yield Problem(
            what=f"the disk of the folder for temporary files, `{temporary.path}`, is nearly full",
            why=f"{temporary.free_bytes / 2**20:,.0f} MiB are free",
            commands=_use_other_folder(facts, "TMPDIR", "winml-tmp"),
        )


def _use_other_folder(facts: EnvironmentFacts, variable: str, name: str) -> tuple[str, ...]:
    """Commands that make a folder in the user's own and let a variable name it; none when there is no such folder."""
    if facts.spare_folder is None:
        return ()
    separator = "\\" if facts.windows else "/"
    folder = _quote(f"{facts.spare_folder.rstrip(separator)}{separator}{name}", facts)
    if facts.windows:
        # `setx` is the same in both shells of Windows; it is for terminals that are opened afterwards.
        return (f"mkdir {folder}", f"setx {variable} {folder}")
    return (f"mkdir -p {folder}", f"export {variable}={folder}")
