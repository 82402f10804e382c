"""JSON held to declared types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from winml.modelkit.core.forms import misfit


class Inner(TypedDict):
    name: str
    size: NotRequired[int | None]


@dataclass
class Record:
    kind: Literal["a", "b"]
    inner: Inner
    pairs: tuple[tuple[str, str], ...]
    values: Mapping[str, list[float]]
    seconds: float = 0.0
    more: Any = None


GOOD: dict[str, Any] = {"kind": "a", "inner": {"name": "n"}, "pairs": [["k", "v"]], "values": {"cpu": [1, 2.5]}}


@pytest.mark.parametrize("more", [{}, {"more": [1]}, {"unknown": 1}, {"inner": {"name": "n", "size": None}}])
def test_what_fits_has_no_misfit(more: dict[str, Any]) -> None:
    assert misfit({**GOOD, **more}, Record, "record") is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "c"}, "`record.kind` must be one of 'a', 'b'"),
        ({"kind": ["a"]}, "`record.kind` must be one of"),
        ({"inner": "x"}, "`record.inner` must be an object"),
        ({"inner": {}}, "`record.inner.name` is missing"),
        ({"inner": {"name": 7}}, "`record.inner.name` must be text"),
        ({"inner": {"name": "n", "size": "7"}}, "`record.inner.size` must be a whole number"),
        ({"inner": {"name": "n", "size": True}}, "`record.inner.size` must be a whole number"),
        ({"pairs": [["k"]]}, r"`record.pairs[0]` must have 2 items"),
        ({"pairs": {"k": "v"}}, "`record.pairs` must be a list"),
        ({"values": {"cpu": [1, "x"]}}, "`record.values.cpu[1]` must be a number"),
        ({"values": [1]}, "`record.values` must be an object"),
        ({"seconds": float("nan")}, "`record.seconds` must be a number"),
        ({"seconds": None}, "`record.seconds` must be a number"),
    ],
)
def test_a_misfit_is_named_with_its_place(change: dict[str, Any], words: str) -> None:
    assert (misfit({**GOOD, **change}, Record, "record") or "").startswith(words)


def test_a_type_that_is_no_form_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="no form of JSON"):
        misfit(1, set, "record")
