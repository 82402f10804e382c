"""A measurement: raw samples per process with everything needed to judge them later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from winml.modelkit.core import sections
from winml.modelkit.core.target import Target
from winml.modelkit.core.trust import OptionGate
from winml.modelkit.core.values import AtLeast, NotEmpty, to_json

NS_PER_MS = 1_000_000
Size = Annotated[int, AtLeast(1)]


@dataclass(frozen=True)
class SessionSection:
    """How a session is opened; never part of a cache key."""

    threads: Size | None = None
    optimization_level: Annotated[str, NotEmpty()] = "all"
    config_entries: dict[str, str] = field(default_factory=dict)
    ep_options: dict[str, str] = field(default_factory=dict)
    fixed_dims: dict[str, Size] = field(default_factory=dict)
    """Sizes of symbolic dimensions, fixed when the session is opened."""


def section_from_json(value: Any, gate: OptionGate) -> SessionSection:
    """A session section as a build config holds it; an error names the first key that does not fit.

    The gate is asked about every setting: options can load libraries and write files.
    """
    section = sections.read(SessionSection, value, "session")
    check_session(section, gate)
    return section


def check_session(section: SessionSection, gate: OptionGate) -> None:
    """Raise for the first setting of a section that the gate refuses."""
    for name, text_value in section.ep_options.items():
        gate.check_option(name, text_value, "session.ep_options")
    for name, text_value in section.config_entries.items():
        gate.check_entry(name, text_value, "session.config_entries")


@dataclass(frozen=True)
class Arm:
    """What is measured: an artifact on a target with a session section."""

    artifact: str
    target: Target
    session: SessionSection

    def to_json(self) -> dict[str, Any]:
        return {"artifact": self.artifact, **self.target.to_json(), "session": to_json(self.session)}


@dataclass(frozen=True)
class Round:
    """The samples one arm gave in one process."""

    arm: int
    round: int
    """Rounds of different arms with the same number belong together."""
    process: int
    order: int
    """Position in the sequence in which arms were created or took their turns."""
    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]
    load_before: float | None
    load_after: float | None

    def to_json(self) -> dict[str, Any]:
        return {
            "arm": self.arm,
            "round": self.round,
            "process": self.process,
            "order": self.order,
            "wall_ns": list(self.wall_ns),
            "cpu_ns": list(self.cpu_ns),
            "load_before": self.load_before,
            "load_after": self.load_after,
        }


def round_of(
    arm: int, number: int, process: int, order: int, samples: dict[str, Any], conditions: dict[str, Any]
) -> Round:
    """A round from what a worker reported: its samples, and what the machine did meanwhile."""
    return Round(
        arm=arm,
        round=number,
        process=process,
        order=order,
        wall_ns=tuple(samples["wall_ns"]),
        cpu_ns=tuple(samples["cpu_ns"]),
        load_before=conditions["load_before"],
        load_after=conditions["load_after"],
    )


def round_from_json(value: dict[str, Any]) -> Round:
    return round_of(value["arm"], value["round"], value["process"], value["order"], value, value)


@dataclass(frozen=True)
class Measurement:
    """Arms, their rounds, the protocol they were measured by and the machine they were measured on."""

    arms: tuple[Arm, ...]
    rounds: tuple[Round, ...]
    protocol: dict[str, Any]
    environment: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "samples",
            "arms": [arm.to_json() for arm in self.arms],
            "rounds": [r.to_json() for r in self.rounds],
            "protocol": dict(self.protocol),
            "environment": dict(self.environment),
        }
