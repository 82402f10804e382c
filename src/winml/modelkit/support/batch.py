"""Several models in one go: a contribution each, and a table of what became of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import CheckFailed, Interrupted, ModelkitError, PartlyDone, RunFailedError
from winml.modelkit.render.contribution import batch_markdown
from winml.modelkit.store import atomic
from winml.modelkit.support.model import read_model
from winml.modelkit.support.produce import SCHEMA, OnEvent, ProduceRequest, check_words, new_folder, produce

BATCH = "batch.json"
REPORT = "batch.md"


def produce_all(request: ProduceRequest, models: tuple[str, ...], on_event: OnEvent) -> dict[str, Any]:
    """A contribution for the one model, or a folder with one for each."""
    if len(models) == 1:
        return produce(request, on_event)
    check_words(request)
    output = new_folder(request.output)
    atomic.make_folder(output)
    rows = []
    for model in models:
        rows.append(_row(replace(request, model=model), output, on_event))
        result = {"schema": SCHEMA, "ok": True, "action": "produce", "folder": str(output), "models": rows}
        # After every model, so that a later failure loses nothing.
        atomic.write_bytes(output / BATCH, (json.dumps(result, indent=2) + "\n").encode())
        atomic.write_bytes(output / REPORT, batch_markdown(result).encode())
    ran = sum(row["status"] == "RUN" for row in rows)
    if ran < len(rows):
        error = PartlyDone if ran else RunFailedError
        raise error(f"{ran} of {len(rows)} models are supported", details=result)
    return result


def _row(request: ProduceRequest, output: Path, on_event: OnEvent) -> dict[str, Any]:
    """What became of one model."""
    try:
        model = read_model(request.model)
        folder = output / _free(output, model.name)
        made = produce(replace(request, output=str(folder)), on_event)["contribution"]
    except Interrupted:
        raise
    except ModelkitError as error:
        return _refused(request.model, error)
    return _line(request.model, "RUN", folder.name, made, None)


def _free(output: Path, name: str) -> str:
    taken = {path.name for path in output.iterdir()}
    return next(n for n in (name, *(f"{name}-{i}" for i in range(2, 1000))) if n not in taken)


def _refused(model: str, error: ModelkitError) -> dict[str, Any]:
    """A model that needs nothing, or that a recipe changes nothing for, is out of scope; a blocked one has evidence."""
    made, folder = error.details.get("contribution"), error.details.get("folder")
    nothing = isinstance(error, CheckFailed) and (made is None or made["reached"] == made["tiers"]["goal"])
    status = "OUT-OF-SCOPE" if nothing else "BLOCKED-UPSTREAM"
    return _line(model, status, None if folder is None else Path(folder).name, made, error.message)


def _line(
    model: str, status: str, folder: str | None, made: dict[str, Any] | None, reason: str | None
) -> dict[str, Any]:
    return {
        "model": model,
        "status": status,
        "folder": folder,
        "reached": None if made is None else made["reached"],
        "tiers": None if made is None else made["tiers"],
        "reason": reason,
    }
