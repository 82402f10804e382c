"""Which cells a matrix has: models times targets, from the table of EPs alone."""

from __future__ import annotations

from collections.abc import Iterable

from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.state import CellPlan
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog, precision
from winml.modelkit.feed import names

COMBOS: tuple[Target, ...] = (
    Target("qnn", "npu"),
    Target("qnn", "gpu"),
    Target("openvino", "cpu"),
    Target("openvino", "npu"),
    Target("openvino", "gpu"),
    Target("cpu", "cpu"),
    Target("dml", "gpu"),
    Target("vitisai", "npu"),
)
"""The default targets."""

_WORDS = {"openvino": "ov", "cpu": "mlas"}
"""EPs with another name in folders and versions."""


def ep_word(target: Target) -> str:
    return _WORDS.get(target.ep, target.ep)


def label(target: Target) -> str:
    """The folder of a target below its model's: `qnn_npu`, `ov_cpu`, `mlas_cpu`."""
    return f"{ep_word(target)}_{target.device}"


@dataclass(frozen=True)
class Cell:
    """One model for one target; its version is unique among all cells of all runs."""

    model: MatrixModel
    target: Target
    precision: str
    calibrated: bool
    """Whether its precision needs calibration data."""
    compile: bool
    package: str
    version: str
    run_stamp: str
    folder: str
    """Its folder, below the output folder."""

    @property
    def label(self) -> str:
        return label(self.target)

    @property
    def plan(self) -> CellPlan:
        """The cell as it appears in results and the journal."""
        return CellPlan(
            version=self.version,
            package=self.package,
            run_stamp=self.run_stamp,
            hf_id=self.model.name,
            source=self.model.source,
            task=self.model.task,
            priority=self.model.priority,
            ep=ep_word(self.target),
            device=self.target.device,
            combo=self.label,
            target=str(self.target),
            precision=self.precision,
            compile=self.compile,
            folder=self.folder,
        )


def plan(
    models: Iterable[MatrixModel],
    targets: tuple[Target, ...],
    *,
    run_stamp: str,
    package_name: str | None = None,
    compiled: bool = False,
) -> tuple[Cell, ...]:
    """The cells in the order in which they are built: all targets of a model before the next model."""
    if len({label(target) for target in targets}) < len(targets):
        raise RequestError("a target is given twice")
    shared = None if package_name is None else names.check_package(package_name)
    pinned = len(targets) == 1
    return tuple(
        _cell(model, target, names.check_stamp(run_stamp), shared, compiled=compiled, pinned=pinned)
        for model in models
        for target in targets
    )


def _cell(model: MatrixModel, target: Target, stamp: str, package: str | None, *, compiled: bool, pinned: bool) -> Cell:
    word = precision.resolve(target, precision.AUTO)
    section = precision.quantize_section(target, word)
    return Cell(
        model=model,
        target=target,
        precision=word,
        calibrated=section is not None and section.mode == "static",
        compile=compiled and catalog.BY_NAME[target.ep].can_compile,
        package=package or model.folder,
        version=names.version(stamp, model.slug, ep=ep_word(target), device=target.device),
        run_stamp=stamp,
        folder=model.folder if pinned else f"{model.folder}/{label(target)}",
    )
