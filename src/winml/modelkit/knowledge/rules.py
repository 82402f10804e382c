"""From findings to advice for a search: pure functions of findings, graph facts and a target.

Only a confirmed finding prunes; a weaker one changes the order. An unknown graph fact never permits: what a
confirmed finding would forbid is then blocked, and what a finding would favour is not favoured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from winml.modelkit.core.config import BuildConfig
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.finding import FACTS, OP_FACTS, Action, After, Condition, ConfigFilter, Finding
from winml.modelkit.core.target import Target

if TYPE_CHECKING:
    from winml.modelkit.graph.description import GraphFacts

Kind = Literal["skip", "boost", "order", "blocked"]
Place = Literal["skip", "last", "first", "start", "finish", "measure"]

_SILENT = ("retracted",)
"""Statuses that advise nothing."""


@dataclass(frozen=True)
class Advice:
    """What to do about some configs, and the finding behind it.

    `skip` and `blocked`: do not try them. `order`: try them last, or start or end with them. `boost`: try them early.
    """

    kind: Kind
    place: Place
    """Where the configs come in a search; `measure` is about how to measure."""
    finding: str
    reason: str
    what: ConfigFilter
    after: After | None = None
    """The event after which it applies."""


def find_fact(facts: GraphFacts, name: str) -> float | None:
    """A number of the graph by the name conditions use (`core.finding.FACTS`); None when it is unknown."""
    family, _, op = name.partition(".")
    if family in OP_FACTS:
        if facts.compiled:  # a compiled part hides the operators it is made of
            return None
        count = facts.ops.get(op, 0)
        if family == "ops":
            return count
        return count / facts.nodes if facts.nodes else None
    if name == "dynamic_axes":
        return len(facts.dynamic_axes)
    value: float | None = facts.macs.macs if name == "macs" else getattr(facts, name)
    return value


def list_facts(facts: GraphFacts) -> dict[str, float]:
    """Every number of the graph that is known, by the name conditions use; shares of operators follow from these."""
    names = (*FACTS, *(f"ops.{op}" for op in facts.ops))
    found = {name: find_fact(facts, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def find_unmet(conditions: Iterable[Condition], facts: GraphFacts) -> tuple[list[Condition], list[Condition]]:
    """The conditions that do not hold, and those that cannot be decided."""
    known = [(condition, find_fact(facts, condition.fact)) for condition in conditions]
    failing = [c for c, value in known if value is not None and not c.holds(value)]
    return failing, [c for c, value in known if value is None]


def _binds(finding: Finding, target: Target) -> bool:
    """Whether the finding applies to this EP and device; one about another EP does not."""
    scope = finding.scope
    if scope.ep is None:
        return True
    return scope.ep == target.ep and scope.device in (None, target.device)


def _unseen(finding: Finding, versions: Mapping[str, str]) -> str | None:
    """A package whose release the finding was not seen with; releases are compared by their first two numbers."""
    for package, seen in finding.scope.versions.items():
        here = versions.get(package)
        if here is not None and _release(here) not in {_release(s) for s in seen}:
            return f"{package} {here} (seen with {', '.join(seen)})"
    return None


def _release(version: str) -> str:
    return ".".join(version.split(".")[:2])


@dataclass(frozen=True)
class _Fit:
    """How well a finding's scope fits: the unknown conditions, and what makes it weaker than its status."""

    unknown: tuple[str, ...]
    weaker: str | None


def _fit(finding: Finding, facts: GraphFacts, families: Collection[str], versions: Mapping[str, str]) -> _Fit | None:
    """None when the finding is about other models."""
    failing, unknown = find_unmet(finding.scope.graph, facts)
    if failing:
        return None
    words = tuple(str(c) for c in unknown)
    if finding.scope.families:
        about = set(finding.scope.families)
        if families and about.isdisjoint(families):
            return None
        if not families:
            words += ("the model type",)
        elif not about.issuperset(families):
            words += (f"which of {', '.join(sorted(families))} the model is",)
    return _Fit(words, _unseen(finding, versions))


def find_advice(
    findings: Iterable[Finding],
    facts: GraphFacts,
    target: Target,
    *,
    families: Collection[str] = (),
    versions: Mapping[str, str] | None = None,
) -> list[Advice]:
    """The advice of all findings that apply to this target and graph, in the order of the findings.

    `families` are the model types that it may be (`dinov2`), none where that is unknown; `versions` are those of the
    packages here.
    """
    advice = []
    for finding in findings:
        if finding.action is None or finding.status in _SILENT or not _binds(finding, target):
            continue
        fit = _fit(finding, facts, families, versions or {})
        found = None if fit is None else _advise(finding, finding.action, fit)
        if found is not None:
            advice.append(found)
    return advice


def _advise(finding: Finding, action: Action, fit: _Fit) -> Advice | None:
    kind: Kind
    place: Place
    if action.verb == "avoid":
        if finding.status != "confirmed" or fit.weaker is not None:
            kind, place = "order", "last"
        else:
            kind, place = "blocked" if fit.unknown else "skip", "skip"
    elif fit.unknown:
        return None  # nothing is favoured on unknown facts
    elif action.verb == "try":
        kind, place = "boost", "first"
    else:
        kind, place = "order", action.verb
    return Advice(kind, place, finding.id, _reason(finding, fit), action.what, action.after)


def _reason(finding: Finding, fit: _Fit) -> str:
    parts = [f"{finding.title} ({finding.id}, {finding.status})"]
    if fit.unknown:
        parts.append(f"unknown here: {', '.join(fit.unknown)}")
    if fit.weaker is not None:
        parts.append(f"not seen with {fit.weaker}, so it does not prune")
    return "; ".join(parts)


def concerns(what: ConfigFilter, config: BuildConfig, *, opset: int | None = None, analyze: bool | None = None) -> bool:
    """Whether a filter matches a config.

    `opset` is the model's own, for a config that keeps it; `analyze` whether analysis adds passes. What a filter
    tests and the config does not tell counts as a match: unknown never permits.
    """
    optimize = config.optimize
    checks = [
        not what.passes or bool(optimize and set(what.passes) & set(optimize.passes)),
        not what.precision or config.precision in what.precision,
        what.compile is None or what.compile == (config.compile is not None),
        what.analyze is None or analyze is None or what.analyze == analyze,
        _has(config.quantize, what.quantize),
        _has(config.session, what.session),
    ]
    if what.opset is not None:
        stated = (optimize.opset if optimize else None) or opset
        checks.append(stated is None or stated in what.opset)
    return all(checks)


def _has(section: object, wanted: Mapping[str, tuple[Any, ...]]) -> bool:
    return not wanted or (section is not None and all(getattr(section, k, None) in v for k, v in wanted.items()))
