from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.sections import choice, flag, key, names, number, optional, section, sizes, text, whole, words


@dataclass(frozen=True)
class Inner:
    size: int = key(whole(1, 8))


@dataclass(frozen=True)
class Outer:
    name: str = key(text)
    on: bool = key(flag, False)
    count: int | None = key(optional(whole(0)), None)
    share: float = key(number(0.0, 1.0), 0.5)
    colour: str = key(choice("red", "green"), "red")
    parts: tuple[str, ...] = key(names, ())
    labels: dict[str, str] = key(words, factory=dict)
    dims: dict[str, int] = key(sizes, factory=dict)
    inner: Inner | None = key(optional(section(Inner)), None)


def test_a_section_comes_back_from_its_json() -> None:
    whole_section = Outer("a", True, 3, 0.25, "green", ("x", "y"), {"k": "v"}, {"n": 2}, Inner(4))
    assert sections.read(Outer, sections.plain(whole_section), "outer") == whole_section


def test_keys_that_are_absent_have_their_defaults() -> None:
    assert sections.read(Outer, {"name": "a"}, "outer") == Outer("a")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "`outer.name` is missing"),
        ({"name": "a", "nmae": 1}, "unknown key `outer.nmae`"),
        ({"name": ""}, "`outer.name` must be text"),
        ({"name": "a", "on": 1}, "`outer.on` must be true or false"),
        ({"name": "a", "count": True}, "`outer.count` must be a whole number but got True"),
        ({"name": "a", "count": -1}, "`outer.count` must be at least 0 but got -1"),
        ({"name": "a", "share": 2}, "`outer.share` must be a number from 0 to 1 but got 2"),
        ({"name": "a", "share": True}, "`outer.share` must be a number"),
        ({"name": "a", "colour": "gren"}, "`outer.colour` cannot be 'gren'"),
        ({"name": "a", "colour": None}, "`outer.colour` cannot be None"),
        ({"name": "a", "parts": ["x", "x"]}, "`outer.parts` must name everything once"),
        ({"name": "a", "parts": "x"}, "`outer.parts` must be a list of names"),
        ({"name": "a", "labels": {"k": 1}}, "`outer.labels` must map names to text"),
        ({"name": "a", "dims": {"n": 0}}, "`outer.dims` must map names to numbers from 1"),
        ({"name": "a", "inner": {"size": 9}}, "`outer.inner.size` must be at most 8 but got 9"),
        ({"name": "a", "inner": {"sizes": 9}}, "unknown key `outer.inner.sizes`"),
        ([], "`outer` must be an object"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        sections.read(Outer, value, "outer")
    assert message in caught.value.message


def test_a_misspelt_word_gets_the_nearest_one_as_hint() -> None:
    with pytest.raises(RequestError) as caught:
        sections.read(Outer, {"name": "a", "colour": "gren"}, "outer")
    assert "did you mean `green`?" in (caught.value.hint or "")
