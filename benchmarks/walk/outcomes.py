"""What came of a step of the walk, judged by what the program said and how it ended."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["right", "wrong", "refused", "not proven", "crashed", "timeout", "skipped"]

CODES = frozenset({0, 1, 2, 3, 4, 5, 6})
"""Exit codes of docs/contract.md; any other is the end of a process that did not mean to end."""
CHECK_FAILED = 5


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a program ended."""

    exit_code: int | None
    """None when it was ended because its time was over."""
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What came of a step."""

    outcome: Outcome
    reason: str = ""
    code: str | None = None
    """The name of the error in the JSON of a failure."""
    facts: dict[str, Any] = field(default_factory=dict)


def judge(step: str, ran: Ran) -> Judgement:
    """The outcome of `winml inspect` or `winml build`; one that ends with 0 must also have proven what it made."""
    if ran.exit_code is None:
        return Judgement(outcome="timeout", reason=f"not done after {ran.seconds:.0f} s")
    if "Traceback (most recent call last)" in ran.stderr or ran.exit_code not in CODES:
        return Judgement(outcome="crashed", reason=_last_line(ran.stderr) or f"ended with {ran.exit_code}")
    said = _read(ran.stdout)
    if said is None:
        return Judgement(outcome="crashed", reason=f"ended with {ran.exit_code} and wrote no JSON")
    if ran.exit_code != 0 or not said.get("ok"):
        return _judge_failure(said, ran.exit_code)
    if step == "inspect":
        return _judge_inspection(said)
    return _judge_build(said)


def judge_check(ran: Ran) -> Judgement:
    """The outcome of `check.py`, which compares a build with PyTorch by itself; a difference is wrong with exit 0."""
    said = _read(ran.stdout) if ran.exit_code == 0 else None
    if said is None:
        # It proves nothing about the build, whatever made it stop.
        why = "not done in time" if ran.exit_code is None else _last_line(ran.stderr) or f"ended with {ran.exit_code}"
        return Judgement(outcome="skipped", reason=why)
    return Judgement(outcome=said["outcome"], reason=said["reason"], facts=said.get("facts", {}))


def _read(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _judge_failure(said: Mapping[str, Any], exit_code: int) -> Judgement:
    """A refusal, or outputs that are wrong and were found out by the program itself."""
    error = said.get("error") or {}
    facts = {"exit_code": exit_code, "stage": said.get("stage"), "hint": error.get("hint")}
    proof = said.get("proof") or {}
    if proof.get("agreement"):
        facts["cosine"] = _least([proof])
    wrong = exit_code == CHECK_FAILED
    return Judgement(
        outcome="wrong" if wrong else "refused",
        reason=str(error.get("message") or f"ended with {exit_code}"),
        code=error.get("code"),
        facts={name: value for name, value in facts.items() if value is not None},
    )


def _judge_inspection(said: Mapping[str, Any]) -> Judgement:
    facts = {name: said.get(name) for name in ("architecture", "task", "parameters")}
    facts["inputs"] = [put["name"] for put in said.get("inputs") or ()]
    facts["parts"] = [part.get("name", "") if isinstance(part, dict) else str(part) for part in said.get("parts") or ()]
    if said.get("reason"):
        return Judgement(outcome="refused", reason=said["reason"], facts=facts)
    return Judgement(outcome="right", facts=facts)


def _judge_build(said: Mapping[str, Any]) -> Judgement:
    parts = said.get("parts") or [said]
    proofs = [part.get("proof") or {} for part in parts]
    facts = {
        "precision": said.get("precision"),
        "simulated": said.get("simulated"),
        "parts": [part["part"] for part in parts if "part" in part],
        "cosine": _least(proofs),
        "nodes": _sum(p["placement"]["nodes"] for p in proofs if p.get("placement")),
        "left": _left(proofs),
        "notes": [str(note)[:300] for note in said.get("notes") or ()][:8],
        "bytes": sum(part["artifact"]["bytes"] for part in parts if part.get("artifact")),
    }
    unproven = [f"{p.get('status', 'not proven')}: {p.get('reason')}" for p in proofs if not _is_proven(p)]
    if unproven:
        return Judgement(outcome="not proven", reason="; ".join(dict.fromkeys(unproven)), facts=facts)
    # What the program says of itself is checked against the numbers that it gives.
    if any(_is_below_its_limit(p) for p in proofs):
        return Judgement(outcome="wrong", reason="called proven below its own limit, with exit 0", facts=facts)
    return Judgement(outcome="right", facts=facts)


def _is_proven(proof: Mapping[str, Any]) -> bool:
    return proof.get("status") == "proven on target"


def _cosine(proof: Mapping[str, Any]) -> float | None:
    value = (proof.get("agreement") or {}).get("cosine")
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _least(proofs: Iterable[Mapping[str, Any]]) -> float | None:
    """The worst agreement of all parts."""
    return min((cosine for cosine in map(_cosine, proofs) if cosine is not None), default=None)


def _is_below_its_limit(proof: Mapping[str, Any]) -> bool:
    cosine = _cosine(proof)
    return cosine is not None and cosine < proof["limit"]


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total


def _left(proofs: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Operators that run on the CPU on another target, without those that a setting of its own leaves there."""
    left: dict[str, int] = {}
    for proof in proofs:
        placed = proof.get("placement") or {}
        if placed.get("requested") == "CPUExecutionProvider":
            continue
        by_setting = placed.get("by_setting") or {}
        for name, number in (placed.get("cpu_ops") or {}).items():
            if number > by_setting.get(name, 0):
                left[name] = left.get(name, 0) + number - by_setting.get(name, 0)
    return left
