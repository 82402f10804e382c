"""What a benchmark writes with `--json FILE`: every value that it measured, and on what.

`scripts/make_measurements.py` makes the tables of `docs/measurements.md` of such files in `benchmarks/results`.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

SCHEMA = "winml/benchmark/1"
_PACKAGES = ("onnxruntime", "onnxruntime-genai", "onnx", "onnxruntime-qnn", "torch", "transformers", "distributed")
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm")
"""Those that decide how fast and how exact kernels of 8 bits are."""


def processor() -> str:
    """The name of the processor and its instructions that matter here, as far as the system tells."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set(facts.get("flags", facts.get("Features", "")).split())
    found = ", ".join(name for name in _INSTRUCTIONS if name in flags)
    name = facts.get("model name") or platform.processor() or platform.machine()
    return f"{name} ({found})" if found else name


def machine() -> dict[str, object]:
    """What the numbers were taken on; no name of the machine."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_results(
    file: Path, command: str, rows: Sequence[tuple[str, Sequence[float]]], *, conditions: Mapping[str, object] = {}
) -> None:
    """Write the values of every row. `command` is what repeats the run, from the folder of the project."""
    found = {
        "schema": SCHEMA,
        "command": command,
        "machine": machine(),
        "versions": _versions(),
        "conditions": {"load": round(os.getloadavg()[0], 2), **conditions},
        "rows": [{"name": name, "values": [float(f"{value:.6g}") for value in values]} for name, values in rows],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
