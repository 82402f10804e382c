"""Progress of a search: finished trials as lines, the running one as a line that is written over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from winml.modelkit.building.events import StageStarted
from winml.modelkit.cli.console import say
from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.events import Event

if TYPE_CHECKING:
    from winml.modelkit.core.verdict import Verdict


class SearchProgress(LineProgress):
    """The running trial, the leader, the time left; verdicts as they come."""

    _now, _label = "", ""
    _budget_s = math.inf

    def _show(self, step: str = "") -> None:
        """The running trial; what it changes comes last, because that is what a narrow terminal may cut off."""
        self.write(" · ".join(part for part in (self._now, step, self._label) if part))

    def show(self, event: Any) -> None:
        if isinstance(event, Event):
            if isinstance(event, StageStarted):
                self._show(event.stage)
            return
        handler = getattr(self, f"_on_{event['event'].replace('-', '_')}", None)
        if handler is not None:
            handler(event)

    def _on_model(self, event: dict[str, Any]) -> None:
        say("note", f"model {event['number']} of {event['total']}: {event['model']}")

    def _on_candidates(self, event: dict[str, Any]) -> None:
        self.write("finding out which passes change the model")

    def _on_insight(self, event: dict[str, Any]) -> None:
        left_out = sum(note.kind in ("skip", "blocked") for note in event["insight"].notes)
        self._budget_s = event["limits"].budget_s
        self.write("")
        count = event["insight"].space.size
        say("note", f"{'thousands of' if count is None else count} choices; {left_out} levels are left out")

    def _status(self, state: Any) -> str:
        from winml.modelkit.core.verdict import gain_pct
        from winml.modelkit.search.race import runners

        ranked = runners(state.trials)
        leads = ranked and ranked[0].score > 0
        best = f" · {ranked[0].trial.id} leads, {gain_pct(ranked[0].score):.1f} % saved" if leads else ""
        left = self._budget_s - state.seconds
        return f"{best}{'' if math.isinf(left) else f' · {max(0.0, left):.0f} s left'}"

    def _on_trying(self, event: dict[str, Any]) -> None:
        from winml.modelkit.search.space import label

        self._now, self._label = f"{event['id']}{self._status(event['state'])}", label(event["choice"])
        self._show()

    def _on_racing(self, event: dict[str, Any]) -> None:
        self._now, self._label = f"{event['id']} another round{self._status(event['state'])}", ""
        self._show()

    def _on_confirming(self, event: dict[str, Any]) -> None:
        self._now, self._label = f"{event['id']} confirming on fresh rounds{self._status(event['state'])}", ""
        self._show()

    def _on_delivering(self, event: dict[str, Any]) -> None:
        self._now, self._label = f"building the champion {event['id']}", ""
        self._show()

    def _on_round(self, event: dict[str, Any]) -> None:
        self._show(f"round {event['number']}")

    def _on_calibration(self, event: dict[str, Any]) -> None:
        if "number" in event:
            self.write(f"measuring how much the baseline varies: A/A round {event['number']}")

    def _on_trial(self, event: dict[str, Any]) -> None:
        trial = event["record"]["trial"]
        self.write("")
        say("note", f"{trial['id']} {_label(trial)}: {_came_to(trial, event['verdict'])} ({trial['seconds']:.1f} s)")

    def _on_confirmation(self, event: dict[str, Any]) -> None:
        verdict = event["record"]["verdict"]
        self.write("")
        word = "KEEP_CONFIRMED" if event["record"]["confirmed"] else "MARGINAL_UNCONFIRMED"
        say("note", f"{event['record']['trial']} {word}: {verdict['reason']}")


def _label(trial: dict[str, Any]) -> str:
    return ", ".join(f"{knob}={level}" for knob, level in trial["choice"]) or "baseline"


def _came_to(trial: dict[str, Any], verdict: Verdict | None) -> str:
    if verdict is None:
        return f"{trial['outcome']}{': ' + trial['reason'] if trial['reason'] else ''}"
    if verdict.gain_pct is None:
        return f"{verdict.verdict}: {verdict.reason}"
    low, high = verdict.interval_pct or (verdict.gain_pct, verdict.gain_pct)
    between = "" if low == high else f" ({low:+.1f} … {high:+.1f})"
    return f"{verdict.verdict}, {verdict.gain_pct:+.1f} % saved{between}"
