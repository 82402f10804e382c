"""What a search came to, as JSON: trials with verdicts, the champion, the front, what was left out and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.verdict import Verdict, gain_pct, speedup
from winml.modelkit.ep.trust import needed_again
from winml.modelkit.measuring.summary import spread_ms
from winml.modelkit.search import pareto, race, strategy
from winml.modelkit.search.study import Study
from winml.modelkit.search.trial import Trial

if TYPE_CHECKING:
    from winml.modelkit.search.prepare import Prepared
    from winml.modelkit.search.run_folder import SearchFolder

SCHEMA = "winml/autoconfig/1"
_SECTIONS = ("target", "optimize", "quantize", "compile", "session")


def _verdict(trial: Trial, study: Study) -> Verdict | None:
    """What the rounds of a trial say; a verdict without rounds where none were needed."""
    if trial.outcome == "baseline":
        return None
    if trial.outcome == "same":
        return Verdict("IDENTICAL", trial.reason)
    if trial.outcome == "slower":
        return Verdict("DISCARD", trial.reason)
    if trial.series is None:
        return Verdict("FAILED", trial.reason)
    if not trial.series.deciding:
        return Verdict("FAILED", trial.series.disturbed or trial.reason)
    return study.plan.measured_by(study.state).verdict(trial.series)


def _changes(config: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Sections of a config that differ from the baseline's, with the keys that do."""
    found: dict[str, Any] = {}
    for section in _SECTIONS:
        mine, theirs = config.get(section), base.get(section)
        if mine == theirs:
            continue
        if isinstance(mine, dict):
            before = theirs if isinstance(theirs, dict) else {}
            found[section] = {key: value for key, value in mine.items() if before.get(key) != value}
        else:
            found[section] = mine
    return found


def _confirmation(trial: Trial, study: Study) -> dict[str, Any] | None:
    for done in study.state.confirmations:
        if done.trial == trial.id:
            word = "KEEP_CONFIRMED" if done.confirmed else "MARGINAL_UNCONFIRMED"
            return {
                "word": word,
                "verdict": dict(done.verdict),
                "measurement": done.measured.get("measurement"),
                "times": done.measured.get("times"),
            }
    return None


def _times(trial: Trial, study: Study) -> dict[str, Any] | None:
    """Milliseconds of the baseline and of a trial in the rounds that decided; of fresh ones where there are some."""
    confirmed = _confirmation(trial, study)
    if confirmed is not None and confirmed["times"] is not None:
        return dict(confirmed["times"])
    series = [trial.series] if trial.series is not None else []
    if trial.outcome == "baseline":
        series = [t.series for t in study.state.trials if t.series is not None]
    metric = next((s.metric for s in series if s.medians_ms), None)
    if metric is None:
        return None
    pairs = [pair for s in series for pair in s.medians_ms.get(metric, ())]
    own = [] if trial.outcome == "baseline" else [pair[1] for pair in pairs]
    base = spread_ms([pair[0] for pair in pairs])
    return {"metric": metric, "base_ms": base, "candidate_ms": spread_ms(own) if own else base}


def _trial(trial: Trial, study: Study) -> dict[str, Any]:
    verdict, facts = _verdict(trial, study), trial.facts
    return {
        "id": trial.id,
        "label": trial.label,
        "choice": dict(trial.choice),
        "target": facts.get("target"),
        "changes": _changes(facts["config"], study.plan.space.base),
        "outcome": trial.outcome,
        "step": None if trial.works else facts.get("step"),
        "reason": trial.reason or (verdict.reason if verdict else ""),
        "same_as": trial.same_as,
        "verdict": None if verdict is None else verdict.to_json(),
        "confirmation": _confirmation(trial, study),
        "times": _times(trial, study),
        "rounds": 0 if trial.series is None else len(trial.series.deciding),
        "accuracy": facts.get("accuracy"),
        "placement": facts.get("placement"),
        "artifact": facts.get("artifact"),
        "probe_ms": facts.get("ms"),
        "because": [dict(reason) for reason in trial.because],
        "reused_from": facts.get("reused_from"),
        "seconds": trial.seconds,
    }


def _champion(study: Study, objective: str) -> dict[str, Any]:
    """The champion with what it gains on fresh rounds and how sure that is; a speed-up only where time was measured."""
    best = strategy.champion(study.state)
    entry = _trial(best, study)
    confirmed = entry["confirmation"]
    gain = 0.0 if confirmed is None else confirmed["verdict"]["gain_pct"]
    interval = None if confirmed is None else confirmed["verdict"]["interval_pct"]
    factors = None if interval is None else [speedup(bound) for bound in interval]
    timed = objective == "latency"
    return {
        **entry,
        "status": "BASELINE_IS_BEST" if confirmed is None else "KEEP_CONFIRMED",
        "gain_pct": gain,
        "gain_interval_pct": interval,
        "speedup": speedup(gain) if timed else None,
        "speedup_interval": factors if timed else None,
        "factor": speedup(gain),
    }


def _front(study: Study) -> list[str]:
    """Trials that no other one beats in speed, accuracy and size at once."""
    points: dict[str, tuple[float, ...]] = {}
    scores = {runner.trial.id: runner.score for runner in race.runners(study.state.trials)}
    for trial in study.state.trials:
        accuracy, artifact = trial.facts.get("accuracy"), trial.facts.get("artifact")
        score = 0.0 if trial.outcome == "baseline" else scores.get(trial.id)
        if score is not None and accuracy is not None and accuracy["value"] is not None and artifact is not None:
            points[trial.id] = (score, accuracy["value"], -float(artifact["bytes"]))
    return pareto.front(points)


def result_of(prepared: Prepared, study: Study, folder: SearchFolder, ended: str | None) -> dict[str, Any]:
    """The JSON object of the contract."""
    state = study.state
    decided = ended is not None or any(done.confirmed for done in state.confirmations)
    return {
        "schema": SCHEMA,
        "ok": True,
        "model": str(prepared.source.path),
        "model_digest": prepared.source.artifact.digest,
        "targets": [r.target.to_json() for r in prepared.resolved],
        "objective": prepared.objective,
        "gate": {**prepared.gate.to_json(), "words": prepared.gate.words()},
        "folder": str(folder.path),
        "finished": ended is not None,
        "ended": ended or "it did not end; `--resume` goes on",
        "seconds": state.seconds,
        "time": {
            "budget_s": None if math.isinf(study.plan.limits.budget_s) else study.plan.limits.budget_s,
            "preparation_s": state.preparation_s,
            "delivery_s": None,
        },
        "choices": study.plan.space.size,
        "trials": [_trial(trial, study) for trial in state.trials],
        "champion": _champion(study, prepared.objective) if decided else None,
        "pareto": _front(study),
        "insight": [note.to_json() for note in prepared.insight.notes],
        "environment": dict(state.trials[0].facts.get("environment", {})) if state.trials else {},
        "drafts": [],
        "notes": list(prepared.notes),
        "next": _next(prepared, study, folder),
    }


def note_time(result: dict[str, Any], delivery_s: float) -> None:
    """Add how long the delivery took, and say when all of it was longer than the budget."""
    result["time"]["delivery_s"] = delivery_s
    budget_s, whole = result["time"]["budget_s"], result["seconds"] + delivery_s
    if budget_s is not None and whole > budget_s:
        result["notes"].append(
            f"it took {whole:.0f} s, {whole - budget_s:.0f} s more than the budget: "
            "a trial or a confirmation that has begun is not cut off"
        )


def _next(prepared: Prepared, study: Study, folder: SearchFolder) -> str:
    """The command that follows."""
    if not strategy.is_finished(study.state, study.plan):
        return prepared.request.again or "the same command with `--resume`"
    again = needed_again(prepared.request.ep_options, prepared.request.trust)
    return f"winml perf -m {shell_word(str(folder.champion))} --target {prepared.resolved[0].target}{again}"


def table(study: Study, objective: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of `results.tsv` and the content of `session.json`."""
    rows = []
    for trial in study.state.trials:
        entry = _trial(trial, study)
        verdict = entry["verdict"] or {}
        interval = verdict.get("interval_pct") or (None, None)
        rows.append(
            {
                "id": trial.id,
                "config": trial.label,
                "target": entry["target"],
                "outcome": trial.outcome,
                "verdict": verdict.get("verdict", "BASELINE"),
                "gain_pct": verdict.get("gain_pct"),
                "low_pct": interval[0],
                "high_pct": interval[1],
                "rounds": entry["rounds"],
                "accuracy": (entry["accuracy"] or {}).get("value"),
                "bytes": (entry["artifact"] or {}).get("bytes"),
                "seconds": trial.seconds,
                "reason": entry["reason"],
            }
        )
    return rows, _session(study, objective)


def _session(study: Study, objective: str) -> dict[str, Any]:
    """The state of the search in the words of the earlier project.

    `baseline_p50` is the median of the probe in ms, `best_p50` what the leader's ratio makes of it; both are null where
    times are not what is searched for.
    """
    state, ranked = study.state, race.runners(study.state.trials)
    timed = objective == "latency" and bool(state.trials)
    base_ms = (state.trials[0].facts.get("ms") or {}).get("wall") if timed else None
    leader = ranked[0] if ranked and ranked[0].score > 0 else None
    best_ms = None if base_ms is None else base_ms * math.exp(-leader.score) if leader else base_ms
    return {
        "schema": "winml/autoconfig-session/1",
        "objective": objective,
        "baseline_p50": base_ms,
        "best_p50": best_ms,
        "best_label": leader.trial.label if leader else "baseline",
        "best_gain_pct": gain_pct(leader.score) if leader else 0.0,
        "consecutive_discards": strategy.consecutive_discards(state),
        "completed": [trial.id for trial in state.trials],
        "seconds": state.seconds,
    }


def raise_for(result: dict[str, Any]) -> None:
    """Raise when nothing but the baseline worked, although something was tried."""
    tried = result["trials"][1:]
    if tried and not any(trial["outcome"] in ("measured", "same", "slower", "inaccurate") for trial in tried):
        words = "; ".join(f"{trial['id']} ({trial['label']}): {trial['reason']}" for trial in tried[:5])
        more = f"; and {len(tried) - 5} more" if len(tried) > 5 else ""
        raise RunFailedError(f"every config failed: {words}{more}", details=result)
