"""The events of a search, besides those of building and measuring."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.search.insight import Insight
from winml.modelkit.search.space import Choice
from winml.modelkit.search.strategy import Confirmation, SearchLimits, State
from winml.modelkit.search.trial import Trial


@dataclass(frozen=True)
class ModelStarted(Event):
    """The search of a model in a list starts."""

    model: str
    number: int
    total: int


@dataclass(frozen=True)
class PassesProbed(Event):
    """Every pass is tried alone, to see which of them change the model."""


@dataclass(frozen=True)
class SearchPlanned(Event):
    """What is known before anything is tried."""

    insight: Insight
    limits: SearchLimits
    trials: int | None = None
    """How many choices there are where all are tried; None where a search chooses among many."""


@dataclass(frozen=True)
class TrialStarted(Event):
    """A choice is built, checked and measured."""

    id: str
    choice: Choice
    state: State


@dataclass(frozen=True)
class RoundStarted(Event):
    """A trial is measured for another round."""

    id: str
    state: State


@dataclass(frozen=True)
class ConfirmationStarted(Event):
    """A leader is measured again."""

    id: str
    state: State


@dataclass(frozen=True)
class TrialEnded(Event):
    trial: Trial
    verdict: Verdict | None
    """None where nothing was measured."""


@dataclass(frozen=True)
class ConfirmationEnded(Event):
    confirmation: Confirmation


@dataclass(frozen=True)
class DeliveryStarted(Event):
    """The build folder of the champion is being written."""

    id: str
