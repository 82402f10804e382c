"""The checks before a config is timed, cheapest first: build, identity, a probe, accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.search.space import ConfigJSON
from winml.modelkit.search.trial import (
    Accuracy,
    Facts,
    Failure,
    FreshRounds,
    Series,
    StageRun,
    Trial,
    TrialArtifact,
    TrialOutcome,
)

SLOWER_LIMIT = 1.5
"""A config whose best probe run takes this many times as long as the baseline's worst is not measured."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """A config as files that can be run."""

    path: str
    identity: str
    """Equal for two builds that cannot differ when they run: same graph, same target, same session section."""
    target: str
    artifact: TrialArtifact
    stages: tuple[StageRun, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProbeAnswer:
    """The result of a few runs."""

    slowdown: float
    """Best run of this config over the worst of the baseline: above 1 it is certainly slower."""
    verdict_s: float
    """Expected time of a verdict."""
    placement: Placement | None = None
    ms: Mapping[str, float] | None = None
    environment: Environment | None = None
    """Of the baseline alone."""


@dataclass(frozen=True)
class GateAnswer:
    """Whether a config is accurate enough, with the numbers."""

    passed: bool
    reason: str
    accuracy: Accuracy | None = None


Calibration = Mapping[str, tuple[float, ...]]
"""A/A rounds by clock."""


class SearchTools(Protocol):
    """What a search calls in the outside world. Each may raise RunFailedError: the config does not work."""

    def build(self, config: ConfigJSON) -> Built: ...
    def probe(self, built: Built) -> ProbeAnswer: ...
    def check(self, built: Built) -> GateAnswer: ...
    def measure(self, built: Built, *, rounds: int, first: int) -> Series: ...
    def calibrate(self, built: Built) -> Calibration | None: ...
    def confirm(self, built: Built, within_s: float) -> tuple[Verdict, FreshRounds]: ...


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """How far a choice got."""

    outcome: TrialOutcome
    facts: Facts
    reason: str = ""
    same_as: str | None = None
    series: Series | None = None
    calibration: Calibration | None = None
    """A/A rounds, when this was the first time they were needed."""


class Guards:
    """Runs every config through the guards before it is measured."""

    def __init__(self, tools: SearchTools) -> None:
        self._tools = tools
        self._built: dict[str, Built] = {}

    def attempt(self, config: ConfigJSON, trials: tuple[Trial, ...], rounds: int) -> Attempt:
        """Build, check and measure a config; `trials` are those before it, the baseline first."""
        facts = Facts(config=config, step="build")
        try:
            built = self._tools.build(config)
            facts = replace(
                facts, target=built.target, artifact=built.artifact, stages=built.stages, identity=built.identity
            )
            twin = next((t for t in trials if t.facts.identity == built.identity and t.outcome != "same"), None)
            if twin is not None:
                return _repeat(twin, facts)
            facts = replace(facts, step="probe")
            probe = self._tools.probe(built)
            facts = replace(
                facts,
                placement=probe.placement,
                ms=probe.ms,
                verdict_s=probe.verdict_s,
                environment=probe.environment,
            )
            if trials and probe.slowdown > SLOWER_LIMIT:
                reason = f"{probe.slowdown:.1f} times slower in a probe of 3 runs"
                return Attempt(outcome="slower", reason=reason, facts=facts)
            facts = replace(facts, step="accuracy")
            answer = self._tools.check(built)
            facts = replace(facts, accuracy=answer.accuracy)
            if not answer.passed:
                return Attempt(outcome="inaccurate", reason=answer.reason, facts=facts)
            facts = replace(facts, step="measuring")
            if not trials:
                return Attempt(outcome="baseline", facts=facts, calibration=self._tools.calibrate(built))
            series = self._tools.measure(built, rounds=rounds, first=0)
            return Attempt(outcome="measured", series=series, facts=facts)
        except (RunFailedError, RequestError) as error:
            if isinstance(error, RequestError) and not trials:
                raise  # the model or the data do not fit, for any config
            # A config that a stage or an EP refuses is a result like any other.
            failure = Failure(code=error.code, message=error.message, hint=error.hint)
            return Attempt(outcome="failed", reason=error.message, facts=replace(facts, failure=failure))

    def _rebuild(self, trial: Trial) -> Built:
        """The build of a trial of this run or an earlier one; its stages are in the cache."""
        if trial.id not in self._built:
            self._built[trial.id] = self._tools.build(trial.facts.config)
        return self._built[trial.id]

    def measure_more(self, trial: Trial) -> Series:
        """One more round of a trial."""
        assert trial.series is not None
        try:
            return self._tools.measure(self._rebuild(trial), rounds=1, first=len(trial.series.deciding))
        except RunFailedError as error:
            # A config that worked and then fails is out of the race; the search continues.
            values: dict[str, tuple[float, ...]] = dict.fromkeys(trial.series.values, ())
            return Series(trial.series.metric, values, f"it failed in a later round: {error.message}")

    def confirm(self, trial: Trial, within_s: float) -> tuple[Verdict, FreshRounds]:
        """The verdict of fresh rounds against the baseline, measured for at most `within_s`, and the measurement."""
        try:
            return self._tools.confirm(self._rebuild(trial), within_s)
        except RunFailedError as error:
            return Verdict("FAILED", error.message), FreshRounds()


def _repeat(twin: Trial, facts: Facts) -> Attempt:
    """A build that is the same as an earlier one is not run again: it works, is too slow or fails in the same way."""
    reason = f"the same graph and session as {twin.id}"
    if twin.works:
        return Attempt(outcome="same", reason=reason, same_as=twin.id, facts=facts)
    return Attempt(outcome=twin.outcome, reason=f"{reason}: {twin.reason}", same_as=twin.id, facts=facts)
