"""What a config has to pass before it is timed, cheapest first: build, identity, a probe, accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from winml.modelkit.core.errors import ModelkitError, RequestError, RunFailedError
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.search.space import Choice
from winml.modelkit.search.study import Tried
from winml.modelkit.search.trial import Series, Trial

SLOWER_LIMIT = 1.5
"""A config whose best probe run takes this many times as long as the baseline's worst is not measured."""


@dataclass(frozen=True)
class Built:
    """A config as files that can be run."""

    path: str
    identity: str
    """Equal for two builds that cannot differ when they run: same graph, same target, same session section."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Probed:
    """What a few runs showed."""

    slowdown: float
    """Best run of this config over the worst of the baseline: above 1 it is slower beyond doubt."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    """Whether a config is accurate enough, and the numbers behind that."""

    passed: bool
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Tools(Protocol):
    """The outside world of a search. Each may raise RunFailedError: the config does not work."""

    def build(self, config: dict[str, Any]) -> Built: ...
    def probe(self, built: Built) -> Probed: ...
    def check(self, built: Built) -> Checked: ...
    def measure(self, built: Built, *, rounds: int, first: int) -> Series: ...
    def calibrate(self, built: Built) -> Mapping[str, tuple[float, ...]] | None: ...
    def confirm(self, built: Built, within_s: float) -> tuple[Verdict, Mapping[str, Any]]: ...


def _same(identity: str, trials: tuple[Trial, ...]) -> Trial | None:
    """The first trial that is the same thing and got as far as being run."""
    return next((t for t in trials if t.facts.get("identity") == identity and t.outcome != "same"), None)


class Guarded:
    """The bench of a study: every config goes through the guards before it is measured."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._built: dict[str, Built] = {}

    def attempt(self, choice: Choice, config: dict[str, Any], trials: tuple[Trial, ...], rounds: int) -> Tried:
        facts: dict[str, Any] = {"config": config}
        try:
            return self._attempt(config, trials, rounds, facts)
        except RunFailedError as error:
            return Tried("failed", error.message, facts=facts | _failure(error))
        except RequestError as error:
            if not trials:
                raise  # the model or the data do not fit, whatever the config
            # A config that a stage or an EP refuses is a result like any other.
            return Tried("failed", error.message, facts=facts | _failure(error))

    def _attempt(self, config: dict[str, Any], trials: tuple[Trial, ...], rounds: int, facts: dict[str, Any]) -> Tried:
        facts["step"] = "build"
        built = self._tools.build(config)
        facts |= {**built.facts, "identity": built.identity}
        earlier = _same(built.identity, trials)
        if earlier is not None:
            return self._repeated(earlier, facts)
        facts["step"] = "probe"
        probed = self._tools.probe(built)
        facts |= probed.facts
        if trials and probed.slowdown > SLOWER_LIMIT:
            return Tried("slower", f"{probed.slowdown:.1f} times slower in a probe of 3 runs", facts=facts)
        facts["step"] = "accuracy"
        checked = self._tools.check(built)
        facts |= checked.facts
        if not checked.passed:
            return Tried("inaccurate", checked.reason, facts=facts)
        facts["step"] = "measuring"
        if not trials:
            return Tried("baseline", facts=facts, calibration=self._tools.calibrate(built))
        series = self._tools.measure(built, rounds=rounds, first=0)
        return Tried("measured", series=series, facts=facts)

    def _repeated(self, earlier: Trial, facts: dict[str, Any]) -> Tried:
        """The same thing need not be run twice; it works, is too slow or fails as it did before."""
        reason = f"the same graph and session as {earlier.id}"
        if earlier.works:
            return Tried("same", reason, same_as=earlier.id, facts=facts)
        return Tried(earlier.outcome, f"{reason}: {earlier.reason}", same_as=earlier.id, facts=facts)

    def _again(self, trial: Trial) -> Built:
        """The build of a trial of this run or an earlier one; its stages are in the cache."""
        if trial.id not in self._built:
            self._built[trial.id] = self._tools.build(trial.facts["config"])
        return self._built[trial.id]

    def more(self, trial: Trial) -> Series:
        assert trial.series is not None
        return self._tools.measure(self._again(trial), rounds=1, first=len(trial.series.deciding))

    def confirm(self, trial: Trial, within_s: float) -> tuple[Verdict, Mapping[str, Any]]:
        try:
            return self._tools.confirm(self._again(trial), within_s)
        except RunFailedError as error:
            return Verdict("FAILED", error.message), {}


def _failure(error: ModelkitError) -> dict[str, Any]:
    return {"failure": {"code": error.code, "message": error.message, "hint": error.hint}}
