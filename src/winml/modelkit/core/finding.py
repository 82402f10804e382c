"""A finding: what is known about an EP, the evidence for it, and what a search may do with it.

What a status or a level asks of the evidence is in `core/ladder.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.sections import choice, each, flag, key, mapping, names, number, optional, section, text, whole
from winml.modelkit.core.values import Between, Pattern

SCHEMA = "winml/finding/1"

EvidenceKind = Literal["latency", "placement", "accuracy", "size", "failure"]
Status = Literal["draft", "replicated", "confirmed", "contested", "retracted"]
Level = Literal["L1", "L2", "L3", "L4", "L5"]
Role = Literal["benefits", "harmed", "neutral", "control"]
Verb = Literal["avoid", "try", "start", "finish", "measure"]
Form = Literal["medians", "samples", "nodes", "distance", "error", "words"]

EVIDENCE_KINDS: tuple[EvidenceKind, ...] = get_args(EvidenceKind)
STATUSES: tuple[Status, ...] = get_args(Status)
LEVELS: tuple[Level, ...] = get_args(Level)

CATEGORIES = (
    "export-opset",
    "quantization",
    "compile",
    "graph-fusion-benefit",
    "graph-fusion-hazard",
    "graph-fusion-neutral",
    "operator-support",
    "session-options",
    "config",
    "build-runtime-failure",
    "measurement-methodology",
    "tooling",
)


FACTS = (
    "nodes", "opset", "dynamic_axes", "conv_share", "parameters", "initializer_bytes", "file_bytes", "macs",
    "ir_version",
)  # fmt: skip
"""Numbers of a graph that conditions may name."""
OP_FACTS = ("ops", "op_share")
"""Families of numbers per operator: how many there are, and their share of all nodes."""


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


def _identifier(value: Any, where: str) -> str:
    word = text(value, where)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", word):
        raise RequestError(f"`{where}` must be lower-case words joined by `-` but got {value!r}")
    return word


@dataclass(frozen=True)
class Condition:
    """A number of the graph within bounds: `conv_share`, `opset`, `dynamic_axes`, `ops.Conv`, `op_share.Conv`."""

    fact: Annotated[
        str,
        # One that no graph has would be unknown for ever, and block what it is about.
        Pattern(
            f"{'|'.join(FACTS)}|({'|'.join(OP_FACTS)})[.].+",
            "the name of a fact",
            known=(*FACTS, *(f"{family}.OP" for family in OP_FACTS)),
        ),
    ]
    at_least: Annotated[float, Between(-1e12, 1e12)] | None = None
    at_most: Annotated[float, Between(-1e12, 1e12)] | None = None

    def holds(self, value: float) -> bool:
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        low = "" if self.at_least is None else f"{self.at_least:g} ≤ "
        high = "" if self.at_most is None else f" ≤ {self.at_most:g}"
        return f"{low}{self.fact}{high}"


@dataclass(frozen=True)
class ScopeModel:
    """A model that was looked at, and what came out."""

    model: str = key(text)
    role: str = key(choice(*get_args(Role)))
    result: str = key(text)


@dataclass(frozen=True)
class Scope:
    """Where the finding was seen. It says nothing about anything outside."""

    ep: str | None = key(optional(text), None)
    """null: a finding about measuring or tooling, which binds no EP."""
    device: str | None = key(optional(choice("npu", "gpu", "cpu")), None)
    """null: every device of the EP."""
    versions: dict[str, tuple[str, ...]] = key(lambda v, w: _versions(v, w), factory=dict)
    """Versions it was seen with, by package."""
    graph: tuple[Condition, ...] = key(each(section(Condition)), ())
    """All of these hold for a graph the finding is about."""
    families: tuple[str, ...] = key(names, ())
    """Model types it is about; empty: the graph alone decides."""
    models: tuple[ScopeModel, ...] = key(each(section(ScopeModel)), ())


def _versions(value: Any, where: str) -> dict[str, tuple[str, ...]]:
    return {name: names(seen, f"{where}.{name}") for name, seen in mapping(value, where).items()}


@dataclass(frozen=True)
class OpsetRange:
    """Opsets from one to another, both included."""

    first: int | None = key(optional(whole(1)), None)
    last: int | None = key(optional(whole(1)), None)

    def __contains__(self, opset: int) -> bool:
        return (self.first is None or opset >= self.first) and (self.last is None or opset <= self.last)


def _values(value: Any, where: str) -> dict[str, tuple[Any, ...]]:
    """Allowed values by key, each a list."""
    found = mapping(value, where)
    for name, allowed in found.items():
        if not isinstance(allowed, list | tuple) or not allowed:
            raise RequestError(f"`{where}.{name}` must be a list of values but got {allowed!r}")
    return {name: tuple(allowed) for name, allowed in found.items()}


@dataclass(frozen=True)
class Selection:
    """The configs in which everything given here holds; what is not given does not matter."""

    passes: tuple[str, ...] = key(names, ())
    """At least one of these optimizer passes is on."""
    opset: OpsetRange | None = key(optional(section(OpsetRange)), None)
    precision: tuple[str, ...] = key(names, ())
    compile: bool | None = key(optional(flag), None)
    analyze: bool | None = key(optional(flag), None)
    quantize: dict[str, tuple[Any, ...]] = key(_values, factory=dict)
    """Keys of the quantize section with the values that are meant."""
    session: dict[str, tuple[Any, ...]] = key(_values, factory=dict)
    protocol: dict[str, Any] = key(mapping, factory=dict)
    """How to measure; only for the verb `measure`."""

    @property
    def empty(self) -> bool:
        return self == Selection()


@dataclass(frozen=True)
class Action:
    """What a search does with a finding; how firmly is decided by the finding's status."""

    verb: str = key(choice(*get_args(Verb)))
    what: Selection = key(section(Selection))
    after: str | None = key(optional(choice("accuracy-collapse", "convergence")), None)
    """Only once this has happened in the search: a collapse of the chosen precision, or no further gain."""


@dataclass(frozen=True)
class Mechanism:
    """Why it is so; confirmed only by the EP's source, documentation or a profile that is named."""

    why: str | None = key(optional(text), None)
    confirmed: bool = key(flag, False)
    source: str | None = key(optional(text), None)


@dataclass(frozen=True)
class Evidence:
    """One observation. `run` names where it is from: two entries of one run are one observation."""

    kind: str = key(choice(*EVIDENCE_KINDS))
    form: str = key(choice(*get_args(Form)))
    run: str = key(text)
    shows: str = key(text)
    speaks: str = key(choice("for", "against", "control"), "for")
    model: str | None = key(optional(text), None)
    family: str | None = key(optional(text), None)
    simulated: bool = key(flag, False)
    versions: dict[str, str] = key(sections.words, factory=dict)
    data: dict[str, Any] | None = key(optional(mapping), None)
    """What was seen, in full; null for `words`."""

    @property
    def raw(self) -> bool:
        return self.data is not None

    @property
    def decides(self) -> bool:
        """Whether it can carry a status: raw, and for latency measured interleaved on a real device."""
        if self.kind != "latency":
            return self.raw
        return self.raw and self.form == "samples" and not self.simulated


@dataclass(frozen=True)
class ExperimentArm:
    """A model the experiment makes, where it runs and how it is opened."""

    builder: str = key(text)
    parameters: dict[str, Any] = key(mapping, factory=dict)
    target: str | None = key(optional(text), None)
    """null: the target of the experiment."""
    session: dict[str, Any] = key(mapping, factory=dict)


@dataclass(frozen=True)
class Expectation:
    """What the experiment shows when the finding is true; what is null is not looked at."""

    base_on_cpu: tuple[str, ...] | None = key(optional(names), None)
    """The op types the EP leaves to the CPU, all of them."""
    candidate_on_cpu: tuple[str, ...] | None = key(optional(names), None)
    candidate_partitions: int | None = key(optional(whole(0)), None)
    candidate_fails_with: str | None = key(optional(text), None)
    """Part of the runtime's message when the candidate cannot be opened; the base can."""
    gain_at_least_pct: float | None = key(optional(number(-1e6, 100)), None)
    """The candidate takes less of the base's time by at least this much, beyond the 95 % interval."""
    cosine_at_most: float | None = key(optional(number(-1, 1)), None)
    relative_error_at_least: float | None = key(optional(number(0, 1e6)), None)


@dataclass(frozen=True)
class Experiment:
    """Two arms made from nothing, and what is compared: data that `winml kb replay` runs."""

    measures: str = key(choice("placement", "failure", "latency", "accuracy"))
    target: str = key(text)
    base: ExperimentArm = key(section(ExperimentArm))
    candidate: ExperimentArm = key(section(ExperimentArm))
    expect: Expectation = key(section(Expectation))


@dataclass(frozen=True)
class HeldOut:
    """How a prediction from the graph alone did on models it was not made from."""

    cases: int = key(whole(1))
    false_positives: int = key(whole(0))


@dataclass(frozen=True)
class Finding:
    """One claim with everything needed to judge it."""

    schema: str = key(_schema)
    id: str = key(_identifier)
    title: str = key(text)
    category: str = key(choice(*CATEGORIES))
    claim: str = key(choice(*EVIDENCE_KINDS))
    """The kind of evidence that decides it."""
    observation: str = key(text)
    scope: Scope = key(section(Scope))
    status: str = key(choice(*STATUSES))
    source: str = key(text)
    confidence: str | None = key(optional(choice(*LEVELS)), None)
    do_not_generalize_to: tuple[str, ...] = key(names, ())
    caveats: tuple[str, ...] = key(names, ())
    evidence: tuple[Evidence, ...] = key(each(section(Evidence)), ())
    mechanism: Mechanism = key(section(Mechanism), factory=Mechanism)
    mechanism_invalidation: str | None = key(optional(text), None)
    follow_up: tuple[str, ...] = key(names, ())
    issue: str | None = key(optional(text), None)
    action: Action | None = key(optional(section(Action)), None)
    related: tuple[str, ...] = key(names, ())
    falsified_by: tuple[str, ...] = key(names, ())
    experiment: Experiment | None = key(optional(section(Experiment)), None)
    held_out: HeldOut | None = key(optional(section(HeldOut)), None)

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value

    @property
    def deciding(self) -> tuple[Evidence, ...]:
        """Raw evidence of the claim's kind that speaks for it."""
        return tuple(e for e in self.evidence if e.kind == self.claim and e.speaks == "for" and e.decides)

    @property
    def runs(self) -> frozenset[str]:
        return frozenset(e.run for e in self.deciding)

    @property
    def single_model(self) -> bool:
        """Whether it was seen on one model alone."""
        return len({m.model for m in self.scope.models}) == 1
