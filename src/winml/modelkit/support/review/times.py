"""Comparisons as evidence: which of two artifacts takes less time, made anew from raw rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from winml.modelkit.ep.targets import parse_target
from winml.modelkit.measuring import stored
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.support.review.evidence import error_of, same

Pace = Literal["faster", "same", "slower", "unknown"]
"""`same`: neither a gain of 2 % nor a loss was shown. `unknown`: nobody could tell."""
Json = Mapping[str, Any]

_OUTCOME = ("verdict", "gain_pct", "interval_pct", "rounds", "metric")


def verdict(result: Json) -> dict[str, Any]:
    """The verdict of the one candidate, made anew from its rounds; nothing else that is said of it decides."""
    (candidate,) = result["candidates"]
    said: dict[str, Any] = candidate["verdict"]
    if not _decides(candidate):
        return {**said, "verdict": "INCONCLUSIVE", "gain_pct": None, "interval_pct": None}
    found: dict[str, Any] = stored.candidate_again(result, candidate)["verdict"]
    return found


def _decides(candidate: Json) -> bool:
    """Whether there are rounds to judge, or a verdict of the kind that needs none."""
    confirmation = candidate["confirmation"]
    if candidate["measurement"] is None:
        return confirmation is None and candidate["verdict"]["verdict"] in ("IDENTICAL", "DISCARD")
    first = candidate["verdict"] if confirmation is None else confirmation["first"]
    return first["verdict"] != "FAILED" and not (candidate["conditions"] or {}).get("disturbed")


def pace(result: Json | None) -> Pace:
    """What a comparison comes to; one that was not made, or did not end well, is unknown."""
    if result is None or not result.get("ok"):
        return "unknown"
    found = verdict(result)
    if found["verdict"] == "KEEP":
        return "faster"
    if found["verdict"] == "DISCARD":
        # Without rounds it is far slower.
        return "slower" if found["interval_pct"] is None or found["interval_pct"][1] < 0 else "same"
    return "same" if found["verdict"] in ("MARGINAL_KEEP", "IDENTICAL") else "unknown"


def told(part: str, result: Json | None) -> str:
    """What is known of the time of a part, as a sentence for people."""
    if result is None:
        return f"the time of {part} was not compared"
    if not result.get("ok"):
        return f"the time of {part} could not be compared: {error_of(result).get('message')}"
    found = verdict(result)
    return f"time of {part}: {found['verdict']}, {found['reason']}"


def on_target(arm: Json, asked: str) -> bool:
    """Whether something ran where it was asked to, on a real device."""
    return parse_target(asked).allows(arm["target"]) and not arm["simulated"]


def wrong(result: Json, target: str, fingerprints: tuple[str | None, str | None]) -> Iterator[str]:
    """What speaks against a comparison of these two artifacts on this target."""
    (candidate,) = result["candidates"]
    for name, arm, expected in zip(("base", "candidate"), (result["base"], candidate), fingerprints, strict=True):
        if expected is None or arm["fingerprint"] != expected:
            yield f"its {name} is another artifact than the one here"
        if not on_target(arm, target):
            yield f"its {name} ran on {arm['target']}{', simulated' if arm['simulated'] else ''}, not on {target}"
    if candidate["tests"] != 1 or result["calibrations"] or candidate["calibration"] is not None:
        yield "it was judged with other candidates or with A/A rounds, which nothing asked for"
    for taken in (candidate, candidate["confirmation"]):
        if taken is not None and taken["measurement"] is not None:
            yield from _measurement(taken["measurement"], result["base"]["target"])
    yield from _verdict(result, candidate)


def _verdict(result: Json, candidate: Json) -> Iterator[str]:
    said, made = candidate["verdict"], verdict(result)
    if any(not same(said[key], made[key]) for key in _OUTCOME):
        yield f"its rounds give {_words(made)}, and it says {_words(said)}"
    last = candidate["confirmation"] or candidate
    if last["measurement"] is None:
        if said["verdict"] == "IDENTICAL" and result["base"]["fingerprint"] != candidate["fingerprint"]:
            yield "it calls two different artifacts identical"
    elif made["rounds"] != len(last["measurement"]["rounds"]) // 2:
        yield "it has rounds that its verdict was not made from"


def _words(found: Json) -> str:
    gain = "no gain" if found["gain_pct"] is None else f"{found['gain_pct']:.2f} %"
    return f"{found['verdict']} ({gain}, {found['rounds']} rounds)"


def _measurement(taken: Json, target: str) -> Iterator[str]:
    """Rounds that are whole, by the protocol of the device."""
    protocol, rounds = taken["protocol"], taken["rounds"]
    expected = PROTOCOLS[target.rpartition("/")[2]].to_json()  # type: ignore[index]  # another word is a KeyError
    if any(protocol[key] != value for key, value in expected.items()):
        yield "its protocol is not the one of the device"
    if any(arm["target"] != target or arm["simulated"] for arm in taken["arms"]):
        yield "its rounds were made on another target"
    if protocol["metric"] == "cpu" and (target != "cpu" or protocol["mode"] == "turns"):
        yield "it was judged by a clock that does not count there"
    numbers = [[r["round"] for r in rounds if r["arm"] == arm] for arm in (0, 1)]
    if numbers[0] != numbers[1] or numbers[0] != list(range(len(rounds) // 2)):
        yield "rounds are missing, or not of two arms"
    if any(len(r["wall_ns"]) != len(r["cpu_ns"]) or len(r["wall_ns"]) < expected["few_pairs"] for r in rounds):
        yield "rounds have fewer samples than the protocol asks for"
