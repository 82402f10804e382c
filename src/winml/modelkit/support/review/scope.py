"""Which files of the repository a contribution may change, by its effort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from winml.modelkit.core.support import Effort, Outcome

_EXPORT = "src/winml/modelkit/building/export/"
_DATA = "src/winml/modelkit/knowledge/"
_KNOWLEDGE = (f"{_DATA}gaps/*.json", "docs/*.md")

ALLOWED: dict[Effort, tuple[str, ...]] = {
    "L0": (),
    "L0*": (),
    "L1-light": (f"{_EXPORT}families.py", f"{_EXPORT}signature.py", "tests/hf_zoo.py", *_KNOWLEDGE),
    "L1": (f"{_EXPORT}*.py", "tests/hf_zoo.py", "tests/building/export/*.py", *_KNOWLEDGE),
    "L2": ("src/winml/modelkit/*", "tests/*", *_KNOWLEDGE),
}
"""Patterns of paths in addition to the recipe and the findings, which every contribution has."""

BROUGHT = (
    f"{_DATA}recipes/*.json",
    f"{_DATA}models/*.json",
    f"{_DATA}methodology.json",
    f"{_DATA}catalog.json",
    "docs/*.md",
    "CHANGELOG.md",
)
"""Where the recipe, the findings and their documentation go in the repository, for every effort."""

NEVER = (
    "skills/*",
    ".github/*",
    "pyproject.toml",
    "constraints.txt",
    "Makefile",
    "scripts/*",
    "src/winml/modelkit/support/review/*",
    "tests/support/review/*",
    "tests/conftest.py",
)
"""Skills are contributed separately, and a contribution must not change how the project is checked."""


def _fits(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def outside(paths: tuple[str, ...], effort: Effort) -> list[str]:
    """The paths that an effort does not allow."""
    return [p for p in paths if _fits(p, NEVER) or not _fits(p, ALLOWED[effort])]


def find_change_problems(
    changed: Mapping[str, str | None], effort: Effort, *, own: str | None, code: Mapping[str, str]
) -> Iterator[str]:
    """Contradictions between a change of the repository and the contribution; `own` is its folder there.

    `changed` and `code` are digests by path: at the head of the change, and in the contribution.
    """
    for path, found in changed.items():
        if (own is not None and path.startswith(f"{own}/")) or _fits(path, BROUGHT):
            continue
        if outside((path,), effort):
            yield f"effort {effort} must not change `{path}`, but the repository does"
        elif path not in code:
            yield f"the repository changes `{path}`, but the contribution does not include it"
        elif found != code[path]:
            yield f"`{path}` differs between the repository and the contribution"


def find_tier_problems(
    effort: Effort, outcome: Outcome, *, code: tuple[str, ...], template: str | None, recipe: bool, findings: int
) -> list[str]:
    """What contradicts the claimed effort and outcome."""
    found = []
    if effort in ("L0", "L0*") and not recipe:
        found.append(f"effort {effort} is a recipe, but there is none")
    if effort == "L0" and template is None:
        found.append("effort L0 is a recipe made from a template, but it names none: that is L0*")
    if effort == "L0*" and template is not None:
        found.append("effort L0* is a recipe without a template, but it names one: that is L0")
    if effort not in ("L0", "L0*") and not code:
        found.append(f"effort {effort} is code, but there is none")
    if outcome != "L0" and not (code and findings):
        found.append(f"outcome {outcome} brings code and findings")
    if outcome == "L2" and not any(path.startswith("src/winml/modelkit/evaluation/") for path in code):
        found.append("outcome L2 brings a task family, but `evaluate` is not changed")
    return found
