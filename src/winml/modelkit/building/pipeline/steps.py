"""The steps of a config, and the model they start from: a build and a stage alone have the same keys by them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from winml.modelkit.building.pipeline.artifact import Source, read_source
from winml.modelkit.building.pipeline.run import Step
from winml.modelkit.building.pipeline.table import OPTIMIZE, QUANTIZE, StageInfo, libraries_of_data
from winml.modelkit.core.config import BuildConfig, DataSection, OptimizeSection, QuantizeSection
from winml.modelkit.core.values import to_json
from winml.modelkit.worker.client import Worker


def find_source(path: Path, worker: Worker) -> Source:
    """The model of a file, hashed with all its files."""
    others = worker.ask(tuple[Path, ...], "graph.external_files", {"path": path}, what="reading the model")
    return read_source(path, others)


def make_steps(config: BuildConfig, source: Source) -> list[Step]:
    """The stages of a config, in their order."""
    found: list[Step] = []
    if config.optimize is not None:
        found.append(optimize_step(config.optimize))
    if config.quantize is not None:
        found.append(quantize_step(config.quantize, source.path.parent))
    return found


def optimize_step(section: OptimizeSection, options: Mapping[str, Any] | None = None) -> Step:
    """The optimizer; `options` are arguments that differ from those in a build, and part of the key."""
    whole = to_json(section)
    options = options or {}
    return Step(OPTIMIZE, {**whole, **options}, _libraries(OPTIMIZE), {"section": whole, **options})


def quantize_step(section: QuantizeSection, model_folder: Path, options: Mapping[str, Any] | None = None) -> Step:
    """The quantizer, for data with a digest; `options` are arguments that differ from those in a build."""
    whole, data = to_json(section), section.calibration
    options = options or {}
    # The result depends on the digest of the data, not on its location.
    key = {name: value for name, value in whole.items() if name != "calibration"}
    return Step(
        QUANTIZE,
        {**key, **options},
        {**_libraries(QUANTIZE), **_data_libraries(data)},
        {"section": whole, "model_folder": str(model_folder), **options},
        calibration=None if data is None else data.digest,
    )


def _libraries(stage: StageInfo) -> dict[str, str]:
    return {name: version(name) for name in stage.libraries}


def _data_libraries(data: DataSection | None) -> dict[str, str]:
    """Versions of what may make inputs of calibration data; what is not installed made none."""
    found = {}
    for name in () if data is None else libraries_of_data(data.source):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
