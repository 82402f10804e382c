"""Evidence: a command that was run, with everything it left behind."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError, WorkerTimeout
from winml.modelkit.core.sections import choice, flag, key, number, optional, text, whole
from winml.modelkit.core.support import RUNG_VERDICTS, RungVerdict

SCHEMA = "winml/evidence/1"
FOLDER = "evidence"
MODEL = "{model}"
"""Stands for the model in the words of a command; where it lies differs from machine to machine."""

MOMENT = "%Y-%m-%dT%H:%M:%SZ"
"""A moment in UTC, to the second."""

_EXITS: dict[int, RungVerdict] = {0: "PASS", 1: "FAIL", 2: "CLI-BLOCKED", 3: "HOST-BLOCKED", 5: "FAIL", 6: "FAIL"}


@dataclass(frozen=True)
class CommandRun:
    """What running a command came to."""

    words: tuple[str, ...]
    """What follows `winml`, with `{model}` for the model."""
    exit_code: int | None
    """None: it was ended after its time."""
    result: dict[str, Any] | None
    """The one JSON object of its stdout."""
    stderr: str
    started: str
    seconds: float


RunCommand = Callable[[tuple[str, ...]], CommandRun]


def verdict_of(exit_code: int | None, error_code: str | None) -> RungVerdict:
    """What an exit code of the contract means for a rung; a bug of the tool blocks, it says nothing of the model."""
    if exit_code is None or error_code == WorkerTimeout.code:
        return "TIMEOUT"
    return _EXITS.get(exit_code, "CLI-BLOCKED")


def error_of(result: Mapping[str, Any] | None) -> dict[str, Any]:
    """The error of a result; empty when it has none."""
    found = (result or {}).get("error")
    return found if isinstance(found, dict) else {}


UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError, RecursionError)
"""What reading evidence raises that has another form than our commands give it."""


def same(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal but for the last digits of their numbers."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) and isinstance(second, int | float):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    return bool(first == second)


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


def _word_list(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(v, str) for v in value):
        raise RequestError(f"`{where}` must be the words of a command but got {value!r}")
    return tuple(value)


def moment(value: Any, where: str) -> str:
    """A moment in UTC, to the second."""
    word = text(value, where)
    try:
        found = datetime.strptime(word, MOMENT).replace(tzinfo=UTC)
    except ValueError:
        found = None
    if found is None or found.strftime(MOMENT) != word:
        raise RequestError(f"`{where}` must be a moment, as 2026-11-16T04:12:00Z, but got {value!r}")
    return word


@dataclass(frozen=True)
class Record:
    """One command of a contribution, as `evidence/ID.json` holds it."""

    schema: str = key(_schema)
    id: str = key(text)
    purpose: str = key(text)
    words: tuple[str, ...] = key(_word_list)
    exit_code: int | None = key(optional(whole(0, 255)))
    timed_out: bool = key(flag)
    verdict: str = key(choice(*RUNG_VERDICTS))
    started: str = key(moment)
    seconds: float = key(number(0, 1e7))
    model: str = key(text)
    """Digest of the model."""
    environment: dict[str, str] = key(sections.words)
    reads: dict[str, str] = key(sections.words)
    """Digests of the files of the contribution that it was given."""
    writes: dict[str, str] = key(sections.words)
    result: str | None = key(optional(text))
    """Digest of `evidence/ID.result.json`; null when it wrote no JSON."""
    log: str = key(text)
    """Digest of `evidence/ID.log`."""

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def record_from_json(value: Any) -> Record:
    return sections.read(Record, value, "")


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
    """The log of a command: what was run, what it told, how it ended."""
    told = run.stderr if not run.stderr or run.stderr.endswith("\n") else f"{run.stderr}\n"
    return (log_head(run.words, model) + told + log_tail(run.exit_code)).encode()


def below(folder: Path) -> list[str]:
    """Every file below a folder by its path with slashes; links are not followed."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() or p.is_symlink())
