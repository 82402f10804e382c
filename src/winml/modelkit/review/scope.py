"""Which files of the repository a contribution may change, by its effort."""

from __future__ import annotations

from fnmatch import fnmatch

from winml.modelkit.core.support import Effort, Outcome

_EXPORT = "src/winml/modelkit/stages/export/"
_KNOWLEDGE = ("src/winml/modelkit/knowledge/gaps/*.json", "docs/*.md")

ALLOWED: dict[Effort, tuple[str, ...]] = {
    "L0": (),
    "L0*": (),
    "L1-light": (f"{_EXPORT}families.py", f"{_EXPORT}signature.py", "tests/hf_zoo.py", *_KNOWLEDGE),
    "L1": (f"{_EXPORT}*.py", "tests/hf_zoo.py", "tests/stages/export/*.py", *_KNOWLEDGE),
    "L2": ("src/winml/modelkit/*", "tests/*", *_KNOWLEDGE),
}
"""Patterns of paths besides the recipe and the findings, which every contribution brings."""

NEVER = ("skills/*", ".github/*", "pyproject.toml", "constraints.txt")
"""Skills go by their own lane, and nobody changes how the project is checked along with a model."""


def outside(paths: tuple[str, ...], effort: Effort) -> list[str]:
    """The paths that an effort does not allow."""
    allowed = ALLOWED[effort]
    return [p for p in paths if any(fnmatch(p, n) for n in NEVER) or not any(fnmatch(p, a) for a in allowed)]


def wrong_tiers(effort: Effort, outcome: Outcome, *, code: tuple[str, ...], template: str | None, recipe: bool,
                findings: int) -> list[str]:  # fmt: skip
    """What contradicts the claimed effort and outcome."""
    found = []
    if effort in ("L0", "L0*") and not recipe:
        found.append(f"effort {effort} is a recipe, and there is none")
    if effort == "L0" and template is None:
        found.append("effort L0 is a recipe made from a template, and it names none: that is L0*")
    if effort == "L0*" and template is not None:
        found.append("effort L0* is a recipe without a template, and it names one: that is L0")
    if effort not in ("L0", "L0*") and not code:
        found.append(f"effort {effort} is code, and there is none")
    if outcome != "L0" and not (code and findings):
        found.append(f"outcome {outcome} brings code and findings")
    if outcome == "L2" and not any(path.startswith("src/winml/modelkit/evaluate/") for path in code):
        found.append("outcome L2 brings a task family, and `evaluate` is not changed")
    return found
