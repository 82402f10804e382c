"""Progress of a search: finished trials as lines, the running one as a line that is written over."""

from __future__ import annotations

import math
from typing import Any

from winml.modelkit.cli.console import say
from winml.modelkit.cli.progress import LineProgress


class SearchProgress(LineProgress):
    """The running trial, the leader, the time left; verdicts as they come."""

    _now = ""
    _budget_s = math.inf

    def on_event(self, event: dict[str, Any]) -> None:
        handler = getattr(self, f"_on_{event['event'].replace('-', '_')}", None)
        if handler is not None:
            handler(event)

    def _on_target(self, event: dict[str, Any]) -> None:
        target = event["target"]
        say("note", f"target {target}{' (simulated)' if target.simulated else ''}")

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
        from winml.modelkit.search.strategy import leader_gain_pct

        gain = leader_gain_pct(state)
        best = "" if gain is None or gain <= 0 else f" · best so far saves {gain:.1f} %"
        left = self._budget_s - state.seconds
        return f"{best}{'' if math.isinf(left) else f' · {max(0.0, left):.0f} s left'}"

    def _on_trying(self, event: dict[str, Any]) -> None:
        from winml.modelkit.search.space import label

        self._now = f"{event['id']} {label(event['choice'])}{self._status(event['state'])}"
        self.write(self._now)

    def _on_racing(self, event: dict[str, Any]) -> None:
        self._now = f"{event['id']} another round{self._status(event['state'])}"
        self.write(self._now)

    def _on_confirming(self, event: dict[str, Any]) -> None:
        self._now = f"{event['id']} confirming on fresh rounds{self._status(event['state'])}"
        self.write(self._now)

    def _on_delivering(self, event: dict[str, Any]) -> None:
        self._now = f"building the champion {event['id']}"
        self.write(self._now)

    def _on_stage(self, event: dict[str, Any]) -> None:
        self.write(f"{self._now} · {event['stage']}")

    def _on_round(self, event: dict[str, Any]) -> None:
        self.write(f"{self._now} · round {event['number']}")

    def _on_calibration(self, event: dict[str, Any]) -> None:
        if "number" in event:
            self.write(f"measuring how much the baseline varies: A/A round {event['number']}")

    def _on_trial(self, event: dict[str, Any]) -> None:
        trial = event["record"]["trial"]
        self.write("")
        say("note", f"{trial['id']} {_label(trial)}: {_came_to(trial)} ({trial['seconds']:.1f} s)")

    def _on_confirmation(self, event: dict[str, Any]) -> None:
        verdict = event["record"]["verdict"]
        self.write("")
        word = "KEEP_CONFIRMED" if event["record"]["confirmed"] else "MARGINAL_UNCONFIRMED"
        say("note", f"{event['record']['trial']} {word}: {verdict['reason']}")


def _label(trial: dict[str, Any]) -> str:
    return ", ".join(f"{knob}={level}" for knob, level in trial["choice"]) or "baseline"


def _came_to(trial: dict[str, Any]) -> str:
    if trial["outcome"] != "measured":
        return f"{trial['outcome']}{': ' + trial['reason'] if trial['reason'] else ''}"
    series = trial["series"]
    values = series["values"][series["metric"]]
    return f"{100 * (1 - math.exp(-sum(values) / len(values))):+.1f} % saved"
