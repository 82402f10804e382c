"""`winml export`: a Hugging Face model as ONNX, compared with PyTorch; a build whose only stage is the export."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from winml.modelkit.building.build import BuildRequest
from winml.modelkit.building.build_parts import build_model
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.export.result import ExportedPart, ExportMetadata, ExportResult
from winml.modelkit.building.result import BuildResult
from winml.modelkit.core import model_ref
from winml.modelkit.core.build_folder import EXPORT
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.values import read
from winml.modelkit.ep.precision import UNQUANTIZED


@dataclass(frozen=True)
class ExportRequest:
    """Everything the user decided."""

    model: str
    output: str
    options: ExportOptions = field(default_factory=ExportOptions)
    opset: int | None = None
    overwrite: bool = False
    rebuild: bool = False
    timeout_s: float | None = None


def export(request: ExportRequest, on_event: OnEvent) -> ExportResult:
    """Export a model, a composite one part by part."""
    ref = model_ref.parse(request.model)
    if not ref.is_exported:
        if ref.kind == "file":
            require_model_file(ref.source)
        raise RequestError(
            f"`{ref}` is ONNX already", hint=f"`winml build -m {shell_word(str(ref))}` takes it as it is"
        )
    config = ConfigRequest(
        model=request.model,
        target="cpu",
        precision=UNQUANTIZED,
        optimize=False,
        opset=request.opset,
        export=request.options,
    )
    built = build_model(
        BuildRequest(
            config=config,
            output=request.output,
            overwrite=request.overwrite,
            rebuild=request.rebuild,
            analyze=False,
            timeout_s=request.timeout_s,
            prove=False,
            unproven="an export is compared with PyTorch instead",
        ),
        lambda event: None if isinstance(event, TargetChosen) else on_event(event),
    )
    builds = [built] if isinstance(built, BuildResult) else [part.result for part in built.parts]
    parts = tuple(_part(one) for one in builds)
    return ExportResult(
        model=built.model,
        folder=built.folder,
        task=parts[0].metadata.task,
        parts=parts,
        notes=built.notes,
        warnings=built.warnings,
    )


def _part(built: BuildResult) -> ExportedPart:
    metadata = read(ExportMetadata, read_object(Path(built.folder) / EXPORT), strict=False)
    stage = built.stages[0]
    return ExportedPart(
        part=metadata.part,
        path=built.artifact.path,
        digest=built.artifact.digest,
        bytes=built.artifact.bytes,
        cache=stage.cache,
        seconds=stage.seconds,
        metadata=metadata,
    )
