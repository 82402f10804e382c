"""Requirements of installed packages: what a line of their metadata asks for, and whether a version fits it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.ep.packages import normalise_name

_LINE = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]")
_CLAUSE = re.compile(r"(~=|==|!=|<=|>=|<|>)\s*([\w.*+!-]+)")


@dataclass(frozen=True)
class Requirement:
    """A line such as `onnxruntime>=1.24; extra == 'x'`."""

    name: str
    versions: str
    """Clauses such as `>=1.24,<2`; empty for any version."""
    is_conditional: bool
    """It has a marker: it holds on some systems, or for an extra."""
    extra: str | None


def parse_requirement(line: str) -> Requirement | None:
    """The requirement in a line of metadata; None for a form that is not known (a URL)."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return None
    name, versions, marker = found.groups()
    extra = _EXTRA.search(marker or "")
    clauses = ",".join(sorted(part.strip() for part in versions.split(",") if part.strip()))
    return Requirement(normalise_name(name), clauses, marker is not None, extra[1] if extra else None)


def _release(version: str) -> tuple[int, ...]:
    """The numbers a version starts with; a pre-release counts as the release that it comes before."""
    found = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", version.strip())
    return tuple(map(int, found[1].split("."))) if found else ()


def _compare(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    length = max(len(left), len(right))
    padded = [one + (0,) * (length - len(one)) for one in (left, right)]
    return (padded[0] > padded[1]) - (padded[0] < padded[1])


def _fits_clause(version: tuple[int, ...], operator: str, wanted: str) -> bool:
    limit = _release(wanted)
    if wanted.endswith(".*"):
        is_same = version[: len(limit)] == limit
        return is_same if operator == "==" else not is_same
    order = _compare(version, limit)
    if operator == "~=":
        return order >= 0 and version[: len(limit) - 1] == limit[:-1]
    answers = {"==": order == 0, "!=": order != 0, "<=": order <= 0, ">=": order >= 0, "<": order < 0, ">": order > 0}
    return answers[operator]


def fits_versions(version: str, versions: str) -> bool:
    """Whether a version fits all clauses; one without numbers is taken to fit, for nothing is known about it."""
    numbers = _release(version)
    return not numbers or all(_fits_clause(numbers, *clause) for clause in _CLAUSE.findall(versions))


def join_clauses(several: Iterable[str]) -> str:
    """Clauses that all have to hold, each once."""
    return ",".join(dict.fromkeys(clause for versions in several for clause in versions.split(",") if clause))
