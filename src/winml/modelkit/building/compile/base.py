"""What every compiler is: told what to compile and where to, it writes the files; and it says why it is not here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from winml.modelkit.core import sections
from winml.modelkit.core.config import CompileSection, compile_section_from_json
from winml.modelkit.core.target import Target
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.ep.catalog import EPInfo

Share = Literal["alone", "share", "last"]
"""A model on its own, one of several that share a context, or the last of them, which writes the binary."""


@dataclass(frozen=True)
class Tools:
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
    """Package to take the EP from where several bring it."""
    tools: Tools = field(default_factory=Tools)

    def to_json(self) -> dict[str, Any]:
        """The arguments of the worker operation."""
        sdk_root = self.tools.sdk_root
        return {
            "model": str(self.model),
            "output": str(self.output),
            "target": {"ep": self.target.ep, "device": self.target.device, "simulated": self.target.simulated},
            "section": sections.plain(self.section),
            "share": self.share,
            "distribution": self.distribution,
            "sdk_root": None if sdk_root is None else str(sdk_root),
        }


def job_from_json(args: dict[str, Any]) -> CompileJob:
    sdk_root = args.get("sdk_root")
    return CompileJob(
        model=Path(args["model"]),
        output=Path(args["output"]),
        target=Target(**args["target"]),
        section=compile_section_from_json(args["section"], OWN_REQUEST),
        share=args.get("share", "alone"),
        distribution=args.get("distribution"),
        tools=Tools(None if sdk_root is None else Path(sdk_root)),
    )


def file_state(path: Path) -> list[int] | None:
    """What changes when a file is written to: its size and time; None when it is gone."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return [stat.st_size, stat.st_mtime_ns]


@dataclass(frozen=True)
class Missing:
    """Why a compiler cannot be used, and what would help."""

    reason: str
    hint: str | None = None


class Compiler(Protocol):
    """One way to compile. Importing it loads no runtime; `compile` is called in a worker."""

    name: str
    summary: str
    """What it uses, in a few words."""
    needs_ep: bool
    """Whether the EP must be installed here."""
    shares: bool
    """Whether it can put several models into one context."""

    def missing(self, info: EPInfo, tools: Tools) -> Missing | None:
        """Why it cannot compile for this EP here; None when it can, as far as files tell."""

    def version(self, tools: Tools) -> str | None:
        """The version of what it brings besides the runtime and the EP; None when it brings nothing."""

    def compile(self, job: CompileJob) -> dict[str, str]:
        """Write `job.output` and what belongs to it; the provider options that were used."""
