"""The report of a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.pages.page import Block, Facts, Page, table
from winml.modelkit.render.units import counted, size

if TYPE_CHECKING:
    from winml.modelkit.packaging.manifest import PackagedArtifact, PackageManifest


def package_page(manifest: PackageManifest) -> Page:
    """What is shipped, in the order in which it is tried, and what the gates said."""
    order = " > ".join(str(one.target) for one in manifest.artifacts)
    whole = sum(entry.bytes for entry in manifest.files.values())
    answer = f"{counted(len(manifest.artifacts), 'artifact')}, tried in this order: {order}; {size(whole)}."
    rows = [_row(one, manifest) for one in manifest.artifacts]
    head = ("target", "precision", "size", "accuracy", "p50 ms", "measured on", "onnxruntime", "SoC")
    gates = [
        (str(one.target), answer.gate, answer.answer, answer.reason, answer.accepted or "")
        for one in manifest.artifacts
        for answer in one.gates
    ]
    blocks: tuple[Block, ...] = (
        table("Artifacts", head, rows),
        table("Gates", ("target", "gate", "answer", "why", "accepted"), gates),
        table(
            "Inputs and outputs",
            ("name", "kind", "type", "shape"),
            [
                (port.name, kind, port.type, " x ".join(map(str, port.shape)))
                for kind, ports in (("input", manifest.inputs), ("output", manifest.outputs))
                for port in ports
            ],
        ),
        table("Files", ("file", "bytes", "digest"),
              [(name, f"{entry.bytes:,}", entry.digest) for name, entry in manifest.files.items()],
              folded=counted(len(manifest.files), "file")),
        Facts("Package", (
            ("name", manifest.name),
            ("source", manifest.source.name),
            ("source digest", manifest.source.digest),
            ("licences", ", ".join(manifest.licenses) or "none given"),
            ("accepted without knowing", ", ".join(manifest.accepted_unknown) or "nothing"),
            ("written by", f"winml {manifest.winml}"),
        )),
    )  # fmt: skip
    return Page("package", manifest.name, answer, blocks)


def _row(one: PackagedArtifact, manifest: PackageManifest) -> tuple[str, ...]:
    fact, latency = next(iter(one.accuracy), None), one.latency
    accuracy = "not measured" if fact is None or fact.value is None else f"{fact.metric} {fact.value:.4f}"
    return (
        f"{one.target}{' (simulated)' if one.target.simulated else ''}",
        one.precision,
        size(sum(manifest.files[name].bytes for name in one.files)),
        accuracy,
        "not measured on a device" if latency is None else f"{latency.p50_ms:.3f}",
        "" if latency is None else latency.machine,
        one.conditions.onnxruntime_tested or "",
        one.conditions.soc or "",
    )
