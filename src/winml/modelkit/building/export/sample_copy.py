"""`winml export --sample`: a copy of the ONNX file that ships with winml, for whoever has no model yet."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from winml.modelkit import sample
from winml.modelkit.building import output_model
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.values import Digest
from winml.modelkit.store import atomic, digest

TASK = "image-classification"


@dataclass(frozen=True, kw_only=True)
class SampleCopy:
    """The sample's ONNX file, as it was written."""

    schema: Literal["winml/export/1"] = "winml/export/1"
    ok: Literal[True] = True
    model: str
    task: str
    path: str
    digest: Digest
    bytes: int


def copy_sample(output: str, *, overwrite: bool) -> SampleCopy:
    """Write the sample's ONNX file to `output`."""
    path = Path(output)
    if path.suffix != ".onnx":
        raise RequestError(f"output `{output}` must end in .onnx: the sample is one file", hint="write `-o model.onnx`")
    output_model.check(path.absolute(), sample.MODEL, overwrite=overwrite)
    atomic.write_bytes(path.absolute(), sample.MODEL.read_bytes())
    return SampleCopy(
        model=sample.MODEL.name,
        task=TASK,
        path=str(path.absolute()),
        digest=digest.of_file(path),
        bytes=path.stat().st_size,
    )
