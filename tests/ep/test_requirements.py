from __future__ import annotations

import pytest

from winml.modelkit.ep.requirements import Requirement, fits_versions, join_clauses, parse_requirement


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("numpy", Requirement("numpy", "", False, None)),
        ("onnx_ir >= 1.0", Requirement("onnx-ir", ">= 1.0", False, None)),
        ("pytest<9.2,>=8.3; extra == 'dev'", Requirement("pytest", "<9.2,>=8.3", True, "dev")),
        ("coverage[toml] (>=4)", Requirement("coverage", ">=4", False, None)),
        (
            "onnxruntime-qnn>=2.7; (platform_system == 'Windows' or platform_system == 'Linux') and extra == 'qnn'",
            Requirement("onnxruntime-qnn", ">=2.7", True, "qnn"),
        ),
        ("tomli; python_version < '3.11'", Requirement("tomli", "", True, None)),
        ("!", None),
    ],
)
def test_a_line_of_metadata_says_what_is_needed_and_when(line: str, wanted: Requirement | None) -> None:
    assert parse_requirement(line) == wanted


@pytest.mark.parametrize(
    ("version", "clauses", "fits"),
    [
        ("1.24.1", ">=1.24", True),
        ("1.24", ">=1.24.0", True),
        ("1.9", ">=1.24", False),
        ("1.24.0", ">=1.24,>=1.24.2", False),
        ("2.13.0+cpu", "==2.13.0", True),
        ("9.2.1", "<9.2,>=8.3", False),
        ("1.24.5", "~=1.24.2", True),
        ("1.25", "~=1.24.2", False),
        ("1.24.5", "==1.24.*", True),
        ("1.24.5", "!=1.24.*", False),
        ("2.0", ">2.0", False),
        ("2.0.1", "<=2.0", False),
        ("unknown", ">=1", True),
        ("1.0", "", True),
    ],
)
def test_a_version_is_held_against_every_clause(version: str, clauses: str, fits: bool) -> None:
    assert fits_versions(version, clauses) is fits


def test_clauses_of_several_are_joined_once_each() -> None:
    assert join_clauses([">=1.24", "", ">=1.24.2,<2", ">=1.24"]) == ">=1.24,>=1.24.2,<2"
