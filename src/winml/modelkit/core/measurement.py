"""A measurement: raw samples per process with everything needed to judge them later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from winml.modelkit.core import values
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.target import Device, Target
from winml.modelkit.core.trust import OptionGate
from winml.modelkit.core.values import AtLeast, NotEmpty, key
from winml.modelkit.core.verdict import Clock

NS_PER_MS = 1_000_000

Positive = Annotated[int, AtLeast(1)]


@dataclass(frozen=True)
class SessionSection:
    """How a session is opened; never part of a cache key."""

    threads: Positive | None = None
    optimization_level: Annotated[str, NotEmpty()] = "all"
    config_entries: Mapping[str, str] = field(default_factory=dict)
    ep_options: Mapping[str, str] = field(default_factory=dict)
    fixed_dims: Mapping[str, Positive] = field(default_factory=dict)
    """Sizes of symbolic dimensions, fixed when the session is opened."""
    runtime: Literal["genai", "onnxruntime"] | None = key(omit=True)
    """The program that runs a folder that generates text; null leaves the choice to winml."""


UNTIMED = SessionSection(config_entries={"session.intra_op.allow_spinning": "0"})
"""How a model is opened whose outputs are looked at and not timed: threads that wait leave the processor to others."""


def section_from_json(value: Any, gate: OptionGate) -> SessionSection:
    """A session section as a build config holds it; an error names the first key that does not fit.

    The gate is asked about every setting: options can load libraries and write files.
    """
    section = values.read(SessionSection, value, "session")
    check_session(section, gate)
    return section


def check_session(section: SessionSection, gate: OptionGate) -> None:
    """Raise for the first setting of a section that the gate rejects."""
    for name, text_value in section.ep_options.items():
        gate.check_option(name, text_value, "session.ep_options")
    for name, text_value in section.config_entries.items():
        gate.check_entry(name, text_value, "session.config_entries")


GenerationMetric = Literal["first-token", "tokens-per-second", "memory"]
"""A run is a prompt with its first token, one token after it, or for memory a whole text."""


@dataclass(frozen=True, kw_only=True)
class GenerationArm:
    """What of a folder that generates text is a run, and the program that runs it."""

    folder: str
    metric: GenerationMetric
    runtime: Literal["genai", "onnxruntime"]
    prompt_tokens: Positive
    new_tokens: Positive
    """Tokens after a prompt, before the next begins."""
    batch: Positive = 1


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What is measured: an artifact on a target with a session section."""

    artifact: str
    target: Target = key(inline=True)
    session: SessionSection
    generation: GenerationArm | None = key(omit=True)
    """For a folder that generates text: what is measured of it."""
    build: str | None = key(omit=True)
    """The identity of the build that it is, where it is one."""


@dataclass(frozen=True, kw_only=True)
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
    peak_bytes: tuple[int, ...] | None = key(omit=True)
    """The most memory that the process had, where that is what is compared."""

    def on(self, clock: Clock) -> tuple[int, ...]:
        """The samples that a clock gave."""
        return (self.peak_bytes or ()) if clock == "memory" else self.cpu_ns if clock == "cpu" else self.wall_ns


@dataclass(frozen=True, kw_only=True)
class SessionsProtocol:
    """`winml perf`: one arm, several times in fresh processes."""

    name: Literal["sessions"] = "sessions"
    iterations: int | None
    """Null where sessions ran for `duration_s`."""
    duration_s: float | None
    warmup: int
    sessions: int
    cool_down_s: float
    timeout_s: float | None


@dataclass(frozen=True)
class CompareProtocol:
    """A round is one fresh process (or pair of them); its value is the median log ratio of its pairs."""

    device: Device
    name: Literal["paired-sequential/1"] = "paired-sequential/1"
    warmup: int = 3
    min_pairs: int = 12
    min_round_s: float = 0.6
    long_round_s: float = 3.0
    """A slow model may end a round after this long with fewer pairs, but at least `few_pairs`."""
    few_pairs: int = 4
    first_look: int = 3
    first_look_alone: int = 4
    """First look without an A/A calibration to lend its variance."""
    lent_df: int = 3
    """Degrees of freedom a calibration lends, however many rounds it has: it may be from quieter times."""
    max_rounds: int = 16
    calibration_rounds: int = 16
    boundary_p: float = 0.0005
    boundary_p_alone: float = 0.00045
    gate_p: float = 0.005
    """One-sided p value a look has to beat for a gate to pass."""
    keep_pct: float = 1.0
    """Smaller gains are not kept, however sure."""
    marginal_pct: float = 2.0
    """Kept gains below this are marginal; a candidate whose 95 % interval ends below it is discarded."""
    confirm_below_pct: float | None = None
    """Kept gains below this are confirmed on fresh rounds before they count."""
    cool_down_s: float = 0.0


Mode = Literal["together", "token", "turns"]
"""together: both alive in one process. token: both alive in two processes, taking turns run by run, because they need
two environments. turns: one after the other, because they must not be alive at the same time."""


@dataclass(frozen=True, kw_only=True)
class PairProtocol:
    """`winml compare`: two arms against each other."""

    protocol: CompareProtocol = key(inline=True)
    mode: Mode
    metric: Clock
    """The clock that decides."""
    seed: int | None


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Arms, their rounds, the protocol they were measured by and the machine they were measured on."""

    kind: Literal["samples"] = "samples"
    arms: tuple[Arm, ...]
    rounds: tuple[Round, ...]
    protocol: SessionsProtocol | PairProtocol
    environment: Environment


@dataclass(frozen=True, kw_only=True)
class NotMeasured:
    """A measurement that ended before its first round: nothing was opened, and nothing is known of the machine."""

    kind: Literal["samples"] = "samples"
    arms: tuple[Arm, ...]
    rounds: tuple[Round, ...] = ()
    protocol: SessionsProtocol | PairProtocol
    environment: Mapping[str, str] = field(default_factory=dict)
