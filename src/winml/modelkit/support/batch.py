"""Several models in one command: a contribution for each, and a table of the outcomes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, Interrupted, ModelkitError, PartlyDone, RunFailedError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.support import Goal, SupportResult
from winml.modelkit.core.values import to_json
from winml.modelkit.render.contribution import batch_markdown
from winml.modelkit.store import atomic
from winml.modelkit.support.model import read_model
from winml.modelkit.support.produce import ProduceRequest, ProduceResult, check_words, new_folder, produce
from winml.modelkit.support.review.contribution import Tiers

BATCH = "batch.json"
REPORT = "batch.md"
Status = Literal["RUN", "BLOCKED-UPSTREAM", "OUT-OF-SCOPE"]


@dataclass(frozen=True, kw_only=True)
class BatchRow:
    """The outcome of one model."""

    model: str
    status: Status
    folder: str | None
    reached: Goal | None
    tiers: Tiers | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class BatchResult(SupportResult):
    action: Literal["produce"] = "produce"
    folder: str
    models: tuple[BatchRow, ...]


def produce_all(request: ProduceRequest, models: tuple[str, ...], on_event: OnEvent) -> ProduceResult | BatchResult:
    """A contribution for the one model, or a folder with one for each."""
    if len(models) == 1:
        return produce(request, on_event)
    check_words(request)
    output = new_folder(request.output)
    atomic.make_folder(output)
    result = BatchResult(folder=str(output), models=())
    for model in models:
        row = _produce_row(replace(request, model=model), output, on_event)
        result = replace(result, models=(*result.models, row))
        # After every model, so that a later failure loses nothing.
        atomic.write_bytes(output / BATCH, (json.dumps(to_json(result), indent=2) + "\n").encode())
        atomic.write_bytes(output / REPORT, batch_markdown(result).encode())
    ran = sum(row.status == "RUN" for row in result.models)
    if ran < len(models):
        error = PartlyDone if ran else RunFailedError
        raise error(f"{ran} of {len(models)} models are supported", result=result)
    return result


def _produce_row(request: ProduceRequest, output: Path, on_event: OnEvent) -> BatchRow:
    """Produce one contribution; a model that needs none, or whose recipe changes nothing, is out of scope."""
    try:
        name = read_model(request.model).name
        taken = {path.name for path in output.iterdir()}
        free = next(n for n in (name, *(f"{name}-{i}" for i in range(2, 1000))) if n not in taken)
        made = produce(replace(request, output=str(output / free)), on_event)
    except Interrupted:
        raise
    except ModelkitError as error:
        blocked = error.result if isinstance(error.result, ProduceResult) else None
        done = blocked is None or blocked.contribution.reached == blocked.contribution.tiers.goal
        needless = isinstance(error, CheckFailed) and done
        return _describe(request.model, "OUT-OF-SCOPE" if needless else "BLOCKED-UPSTREAM", blocked, error.message)
    return _describe(request.model, "RUN", made, None)


def _describe(model: str, status: Status, made: ProduceResult | None, reason: str | None) -> BatchRow:
    return BatchRow(
        model=model,
        status=status,
        folder=None if made is None else Path(made.folder).name,
        reached=None if made is None else made.contribution.reached,
        tiers=None if made is None else made.contribution.tiers,
        reason=reason,
    )
