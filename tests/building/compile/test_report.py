"""What is said about compiled models."""

from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.building.compile.report import model_report, sharing
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import RunFailedError

VALUE = {"name": "x", "dtype": "float32", "shape": [1, 4]}
SOURCE = {"precision": "fp32", "inputs": [VALUE], "outputs": [VALUE]}
FOUND: dict[str, Any] = {"missing": [], "binaries": [{"file": "a.bin", "bytes": 10}], "inputs": [VALUE],
                         "outputs": [VALUE], "embedded_bytes": 0}  # fmt: skip


def _report(found: dict[str, Any], section: CompileSection | None = None) -> dict[str, Any]:
    return model_report("m.onnx", SOURCE, found, {"seconds": 1.0}, section or CompileSection())


def test_a_model_that_names_a_missing_binary_is_no_result() -> None:
    with pytest.raises(RunFailedError, match="wrote no `a.bin`"):
        _report({**FOUND, "missing": ["a.bin"]})


def test_odd_results_are_warned_about() -> None:
    assert _report(FOUND)["warnings"] == []
    assert "no binary was written" in _report({**FOUND, "binaries": []})["warnings"][0]
    assert _report({**FOUND, "binaries": []}, CompileSection(embed=True))["warnings"] == []
    other = {**VALUE, "dtype": "uint8"}
    assert _report({**FOUND, "inputs": [other]})["warnings"] == [
        "the inputs differ from those of the source: x uint8[1, 4]"
    ]


def _made(name: str, **binaries: int) -> dict[str, Any]:
    return {"file": {"file": name}, "binaries": [{"file": f, "bytes": n} for f, n in binaries.items()],
            "embedded_bytes": 0, "seconds": 1.0, "peak_bytes": None}  # fmt: skip


def test_sharing_is_proved_by_who_points_where() -> None:
    found = sharing([_made("a", one=60), _made("b", one=60)], [_made("a", a=50), _made("b", b=50)])
    assert found["shared"] is True
    assert found["binaries"] == [{"file": "one", "bytes": 60, "models": ["a", "b"]}]
    assert (found["bytes"], found["bytes_alone"], found["saved_pct"]) == (60, 100, pytest.approx(40.0))
    assert found["peak_bytes"] is None


def test_models_with_binaries_of_their_own_share_nothing() -> None:
    found = sharing([_made("a", a=50), _made("b", b=50)], [_made("a", a=50), _made("b", b=50)])
    assert (found["shared"], found["saved_pct"]) == (False, 0.0)
