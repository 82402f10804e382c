"""What is said about compiled models. Pure functions over what was read from their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import RunFailedError

Values = Mapping[str, Any]


def model_report(name: str, source: Values, found: Values, answer: Values, section: CompileSection) -> dict[str, Any]:
    """One model: what its files hold, what compiling it took, and what is odd about it.

    A model that names a binary which is not there is no result.
    """
    if found["missing"]:
        lacking = ", ".join(f"`{file}`" for file in found["missing"])
        raise RunFailedError(f"compiling `{name}` wrote no {lacking}, which the model names")
    return {
        **{key: value for key, value in found.items() if key != "missing"},
        **answer,
        "precision": source["precision"],
        "validation": None,
        "warnings": _warnings(source, found, section),
    }


def _warnings(source: Values, found: Values, section: CompileSection) -> list[str]:
    warnings = []
    if not section.embed and not found["binaries"]:
        warnings.append("no binary was written beside the model: the execution provider put it into the ONNX file")
    for kind in ("inputs", "outputs"):
        if found[kind] != source[kind]:
            warnings.append(f"the {kind} differ from those of the source: {_listed(found[kind])}")
    return warnings


def _listed(values: Sequence[Values]) -> str:
    return ", ".join(f"{v['name']} {v['dtype']}{v['shape']}" for v in values)


def binary_bytes(report: Values) -> int:
    """Bytes of compiled data, beside the model or inside it."""
    return int(sum(b["bytes"] for b in report["binaries"])) + int(report["embedded_bytes"])


def sharing(together: Sequence[Values], alone: Sequence[Values]) -> dict[str, Any]:
    """Who points to which binary, and how many bytes that saves, from the files of both ways to compile."""
    sizes = {b["file"]: b["bytes"] for report in together for b in report["binaries"]}
    users = {
        name: [r["file"]["file"] for r in together if any(b["file"] == name for b in r["binaries"])] for name in sizes
    }
    shared_bytes, alone_bytes = sum(sizes.values()), sum(map(binary_bytes, alone))
    return {
        "shared": any(len(models) == len(together) for models in users.values()),
        "binaries": [{"file": name, "bytes": sizes[name], "models": users[name]} for name in sorted(sizes)],
        "bytes": shared_bytes,
        "bytes_alone": alone_bytes,
        "saved_pct": 100.0 * (1.0 - shared_bytes / alone_bytes) if alone_bytes else 0.0,
        "seconds": sum(r["seconds"] for r in together),
        "peak_bytes": max((r["peak_bytes"] for r in together if r["peak_bytes"] is not None), default=None),
    }
