"""Manifests of builds for tests, made from their classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winml.modelkit.building.manifest import BuildManifest, BuildSource, ManifestArtifact, StageRecord
from winml.modelkit.building.pipeline.artifact import Artifact
from winml.modelkit.core.target import Target
from winml.modelkit.store import digest

DIGEST = digest.of_bytes(b"")
SOURCE = Artifact("model.onnx", {"model.onnx": DIGEST})


def manifest(**changes: Any) -> BuildManifest:
    """A build without stages."""
    whole = BuildManifest(
        winml="0.1",
        identity=DIGEST,
        target=Target("cpu", "cpu"),
        precision="fp32",
        source=BuildSource(path="m.onnx", artifact=SOURCE),
        artifact=ManifestArtifact(file="model.onnx", digest=DIGEST),
        stages=(),
        skipped=(),
        calibration=None,
        placement=None,
        seconds=0.0,
        files_by="link",
        folder=("model.onnx",),
        objects={"model.onnx": DIGEST},
        warnings=(),
    )
    return replace(whole, **changes)


def stage(name: str, main: str, files: dict[str, str]) -> StageRecord:
    """A stage with its files."""
    return StageRecord(
        stage=name,
        cache="miss",
        reason="nothing like it was stored",
        stage_key=DIGEST,
        parent=DIGEST,
        artifact=Artifact(main, files),
        seconds=1.0,
        version=1,
        libraries={},
        calibration=None,
        report={},
    )
