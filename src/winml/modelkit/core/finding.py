"""A finding: what is known about an EP, the evidence for it, and what a search may do with it.

What a status or a level asks of the evidence is in `core/ladder.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, get_args

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.evidence import Evidence, EvidenceKind
from winml.modelkit.core.target import Device
from winml.modelkit.core.values import AtLeast, Between, Count, Names, NotEmpty, Pattern, Text

Status = Literal["draft", "replicated", "confirmed", "contested", "retracted"]
Level = Literal["L1", "L2", "L3", "L4", "L5"]
Role = Literal["benefits", "harmed", "neutral", "control"]
Verb = Literal["avoid", "try", "start", "finish", "measure"]

STATUSES: tuple[Status, ...] = get_args(Status)
LEVELS: tuple[Level, ...] = get_args(Level)

Category = Literal[
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
]


FACTS = (
    "nodes", "opset", "dynamic_axes", "conv_share", "parameters", "initializer_bytes", "file_bytes", "macs",
    "ir_version",
)  # fmt: skip
"""Numbers of a graph that conditions may name."""
OP_FACTS = ("ops", "op_share")
"""Families of numbers per operator: how many there are, and their share of all nodes."""


@dataclass(frozen=True)
class Condition:
    """A number of the graph within bounds: `conv_share`, `opset`, `dynamic_axes`, `ops.Conv`, `op_share.Conv`."""

    fact: Annotated[
        str,
        # One that no graph has would always be unknown, and block what it is about.
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

    model: Text
    role: Role
    result: Text


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where the finding was seen. It says nothing about anything outside."""

    ep: Text | None = None
    """null: a finding about measuring or tooling, which binds no EP."""
    device: Device | None = None
    """null: every device of the EP."""
    versions: Mapping[str, Names] = field(default_factory=dict)
    """Versions it was seen with, by package."""
    graph: tuple[Condition, ...] = ()
    """All of these hold for a graph the finding is about."""
    families: Names = ()
    """Model types it is about; empty: the graph alone decides."""
    models: tuple[ScopeModel, ...] = ()


@dataclass(frozen=True)
class OpsetRange:
    """Opsets from one to another, both included."""

    first: Annotated[int, AtLeast(1)] | None = None
    last: Annotated[int, AtLeast(1)] | None = None

    def __contains__(self, opset: int) -> bool:
        return (self.first is None or opset >= self.first) and (self.last is None or opset <= self.last)


AllowedValues = Mapping[str, Annotated[tuple[Any, ...], NotEmpty()]]


@dataclass(frozen=True, kw_only=True)
class ConfigFilter:
    """The configs in which everything given here holds; what is not given does not matter."""

    passes: Names = ()
    """At least one of these optimizer passes is on."""
    opset: OpsetRange | None = None
    precision: Names = ()
    compile: bool | None = None
    analyze: bool | None = None
    quantize: AllowedValues = field(default_factory=dict)
    """Keys of the quantize section with the values that are meant."""
    session: AllowedValues = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    """How to measure; only for the verb `measure`."""

    @property
    def empty(self) -> bool:
        return self == ConfigFilter()


After = Literal["accuracy-collapse", "convergence"]


@dataclass(frozen=True, kw_only=True)
class Action:
    """What a search does with a finding; how firmly is decided by the finding's status."""

    verb: Verb
    what: ConfigFilter
    after: After | None = None
    """Only once this has happened in the search: a collapse of the chosen precision, or no further gain."""


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """Why it is so; confirmed only by the EP's source, documentation or a profile that is named."""

    why: Text | None = None
    confirmed: bool = False
    source: Text | None = None


@dataclass(frozen=True, kw_only=True)
class ExperimentArm:
    """A model the experiment makes, where it runs and how it is opened."""

    builder: Text
    parameters: Mapping[str, Any] = field(default_factory=dict)
    target: Text | None = None
    """null: the target of the experiment."""
    session: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What the experiment shows when the finding is true; what is null is not looked at."""

    base_on_cpu: Names | None = None
    """The op types the EP leaves to the CPU, all of them."""
    candidate_on_cpu: Names | None = None
    candidate_partitions: Count | None = None
    candidate_fails_with: Text | None = None
    """Part of the runtime's message when the candidate cannot be opened; the base can."""
    gain_at_least_pct: Annotated[float, Between(-1e6, 100)] | None = None
    """The candidate takes less of the base's time by at least this much, beyond the 95 % interval."""
    cosine_at_most: Annotated[float, Between(-1, 1)] | None = None
    relative_error_at_least: Annotated[float, Between(0, 1e6)] | None = None


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Two arms made from nothing, and what is compared: data that `winml kb replay` runs."""

    measures: Literal["placement", "failure", "latency", "accuracy"]
    target: Text
    base: ExperimentArm
    candidate: ExperimentArm
    expect: Expectation


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """How a prediction from the graph alone did on models it was not made from."""

    cases: Annotated[int, AtLeast(1)]
    false_positives: Count


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim with everything needed to judge it."""

    schema: Literal["winml/finding/1"] = "winml/finding/1"
    id: Annotated[str, Pattern("[a-z0-9]+(-[a-z0-9]+)*", "lower-case words joined by `-`")]
    """The name of the file."""
    title: Text
    category: Category
    claim: EvidenceKind
    """The kind of evidence that decides it."""
    observation: Text
    scope: Scope
    status: Status
    """confirmed and replicated need raw evidence of two runs; contested and retracted need something against it."""
    source: Text
    confidence: Level | None = None
    do_not_generalize_to: Names = ()
    caveats: Names = ()
    evidence: tuple[Evidence, ...] = ()
    mechanism: Mechanism = field(default_factory=Mechanism)
    mechanism_invalidation: Text | None = None
    follow_up: Names = ()
    issue: Text | None = None
    action: Action | None = None
    related: Names = ()
    falsified_by: Names = ()
    experiment: Experiment | None = None
    held_out: HeldOut | None = None

    @property
    def deciding(self) -> tuple[Evidence, ...]:
        """Raw evidence of the claim's kind that supports it."""
        return tuple(e for e in self.evidence if e.kind == self.claim and e.speaks == "for" and e.decides)

    @property
    def runs(self) -> frozenset[str]:
        return frozenset(e.run for e in self.deciding)

    @property
    def single_model(self) -> bool:
        """Whether it was seen on one model alone."""
        return len({m.model for m in self.scope.models}) == 1
