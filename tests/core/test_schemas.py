from __future__ import annotations

import pytest

from winml.modelkit.core.schemas import MissingField, load_schema, missing_field


def _missing(name: str, path: str, action: str | None = None) -> MissingField | None:
    schema = load_schema(name)
    assert schema is not None
    return missing_field(schema, path, action=action)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("perf", "latency_ms.p50"),
        ("perf", "measurement.rounds[].wall_ns"),
        ("eval", "metrics.accuracy.value"),
        ("compare", "candidates.verdict.gain_pct"),
        ("kb", "findings[].prunes"),
    ],
)
def test_fields_are_found_through_references_lists_and_names_of_maps(name: str, path: str) -> None:
    assert _missing(name, path) is None


def test_the_first_unknown_part_is_named_with_what_stands_there() -> None:
    missing = _missing("perf", "latency_ms.p51")
    assert missing is not None
    assert missing.part == "p51"
    assert "p50" in missing.known


def test_a_field_of_another_action_does_not_count() -> None:
    assert _missing("kb", "judged", "show") is None
    assert _missing("kb", "judged", "list") is not None


def test_a_schema_that_is_not_published_is_none() -> None:
    assert load_schema("nothing") is None
