"""The conclusions of a probe: which known obstacles apply, and what a model needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from winml.modelkit.building.export.describe import FolderInspection
from winml.modelkit.building.export.families import DECODER
from winml.modelkit.building.inspect import Inspection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.recipe import ExportPart
from winml.modelkit.support.probe_result import Answer, Attempt, Obstacle

LARGE = 2 * 2**30
"""The size limit of a protobuf file; more needs external data."""
TEXT_LENGTH = 16
"""The length of a text in tokens, where a size has to be fixed."""


@dataclass(frozen=True)
class Help:
    """A change that is known to help, as part of a recipe."""

    name: str
    because: str
    export: ExportPart


@dataclass(frozen=True)
class ProbeFacts:
    """What was found out about a model with its defaults."""

    described: FolderInspection | Inspection
    build: Attempt
    runs: Sequence[Attempt] = ()
    helped: Help | None = None
    """The first known help that made it build."""

    @property
    def folder(self) -> FolderInspection | None:
        """The inspection of a model that is exported; None for an ONNX model."""
        return self.described if isinstance(self.described, FolderInspection) else None

    @property
    def parts(self) -> tuple[str, ...]:
        """What a model is taken apart into; a decoder with its cache is one graph."""
        named = () if self.folder is None else tuple(part.part for part in self.folder.parts)
        return tuple(name for name in named if name != DECODER)

    @property
    def task(self) -> str | None:
        return None if self.folder is None else self.folder.task

    @property
    def inputs_unknown(self) -> bool:
        """Whether the exporter cannot determine the inputs of the model."""
        return self.folder is not None and self.folder.inputs is None

    @property
    def covered(self) -> bool | None:
        """Whether the exporter knows the inputs of the class; None for a model that is not exported."""
        return None if self.folder is None else not self.inputs_unknown


def list_obstacles(seen: ProbeFacts) -> list[Obstacle]:
    """Every known obstacle, and whether it applies."""
    return [
        _composite(seen),
        _encoder_decoder(seen),
        _value_ranges(seen),
        _external_data(seen),
        _find_renamed_class(seen),
        _unknown_inputs(seen),
        _dynamic_axes(seen),
    ]


def _composite(seen: ProbeFacts) -> Obstacle:
    if seen.covered is False:
        return Obstacle("composite", None, "the exporter does not know its parts")
    because = f"it is built as {', '.join(seen.parts)}" if seen.parts else "it is one graph"
    return Obstacle("composite", bool(seen.parts), because)


def _encoder_decoder(seen: ProbeFacts) -> Obstacle:
    if seen.covered is False:
        return Obstacle("encoder-decoder", None, "the exporter does not know its parts")
    apart = "encoder" in seen.parts
    return Obstacle(
        "encoder-decoder", apart, "its decoder reads the output of its encoder" if apart else "it has no such pair"
    )


def _value_ranges(seen: ProbeFacts) -> Obstacle:
    if seen.helped is not None and seen.helped.export.input_specs:
        return Obstacle("value-ranges", True, seen.helped.because)
    if seen.build.verdict == "PASS" and all(run.verdict != "FAIL" for run in seen.runs):
        return Obstacle("value-ranges", False, "it accepts the values of synthetic inputs")
    return Obstacle("value-ranges", None, "it did not run, so no values were tried")


def _external_data(seen: ProbeFacts) -> Obstacle:
    described = seen.described
    if isinstance(described, FolderInspection):
        size = described.weight_bytes
    else:
        size = sum(file.bytes for file in described.description.files)
    if size is None:
        return Obstacle("external-data", None, "the size of its weights is unknown")
    return Obstacle("external-data", size > LARGE, f"{size} bytes of weights")


def _find_renamed_class(seen: ProbeFacts) -> Obstacle:
    if seen.folder is None:
        return Obstacle("renamed-class", False, "an ONNX model names no class")
    named = seen.folder.architecture
    if named is None:
        return Obstacle("renamed-class", None, "its config names no class")
    if seen.inputs_unknown:
        return Obstacle("renamed-class", None, f"`{named}` is not a known class; it may be new or renamed")
    return Obstacle("renamed-class", False, f"`{named}` is known")


def _unknown_inputs(seen: ProbeFacts) -> Obstacle:
    if seen.folder is None:
        return Obstacle("unknown-inputs", False, "an ONNX model names its inputs")
    if seen.inputs_unknown:
        return Obstacle("unknown-inputs", True, f"its inputs are not described anywhere: {seen.folder.reason}")
    derived = bool(seen.folder.derived)
    return Obstacle(
        "unknown-inputs", False, "its inputs follow from its class" if derived else "the exporter knows its inputs"
    )


def _dynamic_axes(seen: ProbeFacts) -> Obstacle:
    if seen.helped is not None and seen.helped.export.dynamic_axes == ():
        return Obstacle("dynamic-axes", True, seen.helped.because)
    if seen.inputs_unknown:
        return Obstacle("dynamic-axes", None, "the exporter does not know its inputs")
    if isinstance(seen.described, FolderInspection):
        axes = sorted({axis for spec in seen.described.inputs or () for axis in spec.shape if isinstance(axis, str)})
    else:
        axes = sorted(seen.described.description.facts.dynamic_axes)
    npu = [t.target for t in seen.runs if (t.target or "").endswith("/npu")]
    if axes and npu:
        return Obstacle("dynamic-axes", True, f"{', '.join(axes)} are fixed for {npu[0]}")
    return Obstacle("dynamic-axes", False, f"open: {', '.join(axes)}" if axes else "every size is fixed")


def find_answer(seen: ProbeFacts) -> tuple[Answer, str]:
    """What the model needs, as an answer and as a sentence."""
    if seen.helped is not None:
        return "recipe", f"needs a recipe: {seen.helped.because}"
    build = seen.build
    if build.verdict == "PASS":
        return _answer_by_runs(seen)
    if build.verdict in ("HOST-BLOCKED", "TIMEOUT"):
        return "blocked", f"blocked because {build.message}"
    if seen.folder is not None and seen.inputs_unknown and seen.folder.files:
        return "code", f"needs code, or a recipe that names its task and inputs: {seen.folder.reason}"
    if build.verdict == "CLI-BLOCKED":
        return "blocked", f"blocked because {build.message}"
    return "code", f"needs code: no known help makes it build: {build.message}"


def _answer_by_runs(seen: ProbeFacts) -> tuple[Answer, str]:
    ran = [str(t.target) for t in seen.runs if t.verdict == "PASS"]
    if ran:
        return "nothing", f"needs nothing: the default builds and runs on {', '.join(dict.fromkeys(ran))}"
    failed = next(iter(seen.runs), None)
    why = "no target was given" if failed is None else f"{failed.message}"
    return "blocked", f"blocked because it builds but runs on no target here: {why}"


def list_helps(described: FolderInspection, config: Mapping[str, Any]) -> list[Help]:
    """Changes that have helped other models, the most specific first; `config` is the model's own config.json."""
    texts = any(spec.name == "input_ids" for spec in described.inputs or ())
    sizes: dict[str, tuple[int, ...]] = {"batch": (1,), "sequence": (TEXT_LENGTH,)} if texts else {"batch": (1,)}
    fixed = ExportPart(shapes=sizes, dynamic_axes=())
    end = config.get("eos_token_id")
    found = []
    if type(end) is int and texts:
        because = f"every input needs its end token, so ids are drawn from {end} to {end + 1}"
        specs = {"input_ids": {"low": end, "high": end + 1}}
        found.append(Help("end-token", because, replace(fixed, input_specs=specs)))
    found.append(Help("fixed-shapes", "it builds only with every size fixed", fixed))
    found.append(Help("legacy-exporter", "only the legacy exporter traces it", ExportPart(exporter="legacy")))
    return found
