"""The machine and the versions that something was measured with."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import key


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Null where the system does not report a value."""

    system: str
    release: str
    architecture: str
    cpu: str | None
    cores: int
    """Cores that the process may run on."""


@dataclass(frozen=True, kw_only=True)
class RuntimeVersion:
    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class EPVersion:
    name: str
    version: str | None


@dataclass(frozen=True, kw_only=True)
class Power:
    governor: str | None


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What a measurement must carry about where it was taken."""

    machine: Machine
    winml: str
    python: str
    numpy: str
    runtime: RuntimeVersion
    ep: EPVersion
    power: Power
    priority: int | None
    load: float | None
    pressure_pct: float | None
    """Share of the last 10 s in which something waited for a CPU (Linux PSI)."""
    huge_pages: bool | None = key(omit=True)
    """Whether measuring processes ask for huge pages; only comparisons report it."""
