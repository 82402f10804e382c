"""Evidence: a command that was run, with everything it left behind."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, WorkerTimeout
from winml.modelkit.core.support import RungVerdict
from winml.modelkit.core.values import AtLeast, AtMost, Digest, NotEmpty, Pattern, Text

FOLDER = "evidence"
MODEL = "{model}"
"""Stands for the model in the arguments of a command; its path differs between machines."""

MOMENT = "%Y-%m-%dT%H:%M:%SZ"
"""A time in UTC, to the second."""
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"
Moment = Annotated[str, Pattern(_MOMENT, "a time such as 2026-11-16T04:12:00Z,")]

_EXITS: dict[int, RungVerdict] = {0: "PASS", 1: "FAIL", 2: "CLI-BLOCKED", 3: "HOST-BLOCKED", 5: "FAIL", 6: "FAIL"}


@dataclass(frozen=True)
class CommandRun:
    """The result of running a command."""

    words: tuple[str, ...]
    """What follows `winml`, with `{model}` for the model."""
    exit_code: int | None
    """None: it timed out."""
    result: Mapping[str, Any] | None
    """The JSON object on its stdout."""
    stderr: str
    started: str
    seconds: float


RunCommand = Callable[[tuple[str, ...]], CommandRun]


def verdict_of(exit_code: int | None, error_code: str | None) -> RungVerdict:
    """What an exit code of the contract means for a rung; a bug of the tool says nothing about the model."""
    if exit_code is None or error_code == WorkerTimeout.code:
        return "TIMEOUT"
    return _EXITS.get(exit_code, "CLI-BLOCKED")


def same(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal but for the last digits of their numbers."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) and isinstance(second, int | float):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    return bool(first == second)


def require_moment(text: str, where: str) -> None:
    """Raise for a text that looks like a time but is not valid, such as February 30."""
    try:
        datetime.strptime(text, MOMENT).replace(tzinfo=UTC)
    except ValueError:
        raise RequestError(f"`{where}` must be a time such as 2026-11-16T04:12:00Z, but got {text!r}") from None


@dataclass(frozen=True, kw_only=True)
class Record:
    """One command of a contribution, as `evidence/ID.json` holds it."""

    schema: Literal["winml/evidence/1"] = "winml/evidence/1"
    id: Text
    purpose: Text
    words: Annotated[tuple[str, ...], NotEmpty()]
    exit_code: Annotated[int, AtLeast(0), AtMost(255)] | None
    timed_out: bool
    verdict: RungVerdict
    started: Moment
    seconds: Annotated[float, AtLeast(0), AtMost(1e7)]
    model: Digest
    environment: Mapping[str, str]
    reads: Mapping[str, Digest]
    """Digests of the files of the contribution that it read."""
    writes: Mapping[str, Digest]
    result: Digest | None
    """Digest of `evidence/ID.result.json`; null when it wrote no JSON."""
    log: Digest
    """Digest of `evidence/ID.log`."""

    def __post_init__(self) -> None:
        require_moment(self.started, "started")


def record_path(name: str) -> str:
    return f"{FOLDER}/{name}.json"


def result_path(name: str) -> str:
    return f"{FOLDER}/{name}.result.json"


def log_path(name: str) -> str:
    return f"{FOLDER}/{name}.log"


def result_text(result: Mapping[str, Any]) -> bytes:
    return (json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def log_head(words: tuple[str, ...], model: str) -> str:
    """How the log of a command begins: what was run, on which model."""
    return f"$ winml {' '.join(words)}\nmodel {model}\n"


def log_tail(exit_code: int | None) -> str:
    return "ended after its time\n" if exit_code is None else f"exit {exit_code}\n"


def log_text(run: CommandRun, model: str) -> bytes:
    """The log of a command: what was run, what it printed, how it ended."""
    printed = run.stderr if not run.stderr or run.stderr.endswith("\n") else f"{run.stderr}\n"
    return (log_head(run.words, model) + printed + log_tail(run.exit_code)).encode()


def below(folder: Path) -> list[str]:
    """Every file below a folder by its path with slashes; links are not followed."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() or p.is_symlink())
