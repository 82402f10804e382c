"""The protocol of compilers: each writes the files of a compiled model, or reports why it is not available."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Literal, Protocol

from winml.modelkit.building.compile.result import CompilerName, FileState
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Target
from winml.modelkit.ep.catalog import EPInfo

Share = Literal["alone", "share", "last"]
"""A model on its own, one of several that share a context, or the last of them, which writes the binary."""


@dataclass(frozen=True)
class CompileTools:
    """What a compiler may need besides the EP's package."""

    sdk_root: Path | None = None
    """Folder of the QAIRT SDK."""


@dataclass(frozen=True)
class CompileJob:
    """One model to compile into one file, in this process."""

    model: Path
    output: Path
    target: Target
    section: CompileSection
    share: Share = "alone"
    distribution: str | None = None
    """Package to take the EP from where several provide it."""
    tools: CompileTools = field(default_factory=CompileTools)
    seed: int = 0
    """Seed of the inputs that it is validated on."""


def file_state(path: Path) -> FileState | None:
    """What changes when a file is written to; None when it no longer exists."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns


@dataclass(frozen=True)
class Missing:
    """Why a compiler cannot be used, and what would help."""

    reason: str
    hint: str | None = None


class Compiler(Protocol):
    """One way to compile. Importing it loads no runtime; `compile` is called in a worker."""

    name: CompilerName
    summary: str
    """A short description of what it uses."""
    needs_ep: bool
    """Whether the EP must be installed on this machine."""
    shares: bool
    """Whether it can put several models into one context."""

    def missing(self, info: EPInfo, tools: CompileTools) -> Missing | None:
        """Why it cannot compile for this EP here; None when it can, as far as the installed files show."""

    def version(self, tools: CompileTools) -> str | None:
        """The version of its own tools, besides the runtime and the EP; None when it has none."""

    def compile(self, job: CompileJob) -> dict[str, str]:
        """Write `job.output` and what belongs to it; the provider options that were used."""
