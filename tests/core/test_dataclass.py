"""The frozen dataclasses of this package behave as those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from typing import Any

import pytest

from winml.modelkit.core.dataclass import dataclass


def build(decorate: Any) -> dict[str, Any]:
    """The same classes, made by one decorator."""

    @decorate(frozen=True)
    class Point:
        x: int
        y: float = 0.5

    @decorate(frozen=True, kw_only=True)
    class Named(Point):
        name: str
        tags: list[str] = field(default_factory=list)
        note: str = field(default="", compare=False, repr=False)
        size: int = field(default=3, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", len(self.name))

    @decorate(frozen=True)
    class Nothing:
        """No field."""

    @decorate(frozen=True)
    class Single:
        values: float

    @decorate(frozen=True)
    class Alike:
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Alike)

    @decorate(frozen=True)
    class Own:
        value: int

        def __init__(self) -> None:
            object.__setattr__(self, "value", 7)

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 5

    return {cls.__name__: cls for cls in (Point, Named, Nothing, Single, Alike, Own)}


@pytest.fixture(params=[dataclasses.dataclass, dataclass], ids=["standard", "ours"])
def classes(request: pytest.FixtureRequest) -> dict[str, Any]:
    return build(request.param)


def test_a_value_takes_its_fields_by_place_and_by_name(classes: dict[str, Any]) -> None:
    assert astuple(classes["Point"](1)) == (1, 0.5)
    assert astuple(classes["Point"](1, y=2.0)) == (1, 2.0)
    named = classes["Named"](1, name="ab", note="n")
    assert asdict(named) == {"x": 1, "y": 0.5, "name": "ab", "tags": [], "note": "n", "size": 2}
    assert classes["Named"](1, name="a").tags is not classes["Named"](1, name="a").tags


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1, 2.0, 3), {}), ((1,), {"z": 2}), ((1,), {"x": 1})],
    ids=["missing", "too many", "unknown", "twice"],
)
def test_a_call_that_does_not_fit_is_refused(classes: dict[str, Any], args: Any, named: Any) -> None:
    with pytest.raises(TypeError, match="__init__"):
        classes["Point"](*args, **named)


def test_a_field_by_name_alone_is_not_taken_by_place(classes: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        classes["Named"](1, 2.0, "ab")
    with pytest.raises(TypeError):
        classes["Named"](1, 2.0, name="ab", size=1)


def test_values_are_equal_and_hashed_by_the_fields_that_are_compared(classes: dict[str, Any]) -> None:
    point, named = classes["Point"], classes["Named"]
    assert point(1) == point(1) != point(2)
    assert hash(point(1)) == hash(point(1))
    assert named(1, name="a", note="x") == named(1, name="a", note="y")
    assert point(1) != (1, 0.5)
    assert point(1) != named(1, name="a")
    assert classes["Nothing"]() == classes["Nothing"]()
    nan = float("nan")
    assert classes["Single"](nan) == classes["Single"](nan)
    with pytest.raises(TypeError, match="unhashable"):
        hash(named(1, name="a"))


def test_methods_of_the_class_itself_stay(classes: dict[str, Any]) -> None:
    own = classes["Own"]()
    assert (own.value, repr(own), hash(own)) == (7, "own", 5)
    assert classes["Alike"](1) == classes["Alike"](2)
    assert hash(classes["Alike"](1)) == hash(classes["Alike"](1))


def test_a_value_cannot_change(classes: dict[str, Any]) -> None:
    point = classes["Point"](1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x


def test_it_is_a_dataclass_to_the_standard_library(classes: dict[str, Any]) -> None:
    named = classes["Named"](1, name="ab")
    assert is_dataclass(type(named))
    assert [one.name for one in fields(named)] == ["x", "y", "name", "tags", "note", "size"]
    assert replace(named, name="abc").size == 3
    assert copy.deepcopy(named) == named
    assert repr(named) == f"{type(named).__qualname__}(x=1, y=0.5, name='ab', tags=[], size=2)"
    assert classes["Named"].__match_args__ == ("x", "y")
    match classes["Point"](4):
        case object(x=x):
            assert x == 4


@dataclass(frozen=True)
class Parcel:
    content: int


def test_values_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Parcel(3))) == Parcel(3)


def test_a_subclass_whose_parent_made_values_before_has_its_own_init() -> None:
    @dataclass(frozen=True)
    class Parent:
        a: int

    @dataclass(frozen=True)
    class Child(Parent):
        b: int

    class Plain(Parent):
        """No dataclass of its own: it takes the parent's `__init__`."""

    assert Plain(1).a == 1
    assert (Parent(1).a, Child(1, 2).b, Plain(3).a) == (1, 2, 3)


def test_a_class_whose_fields_change_is_a_standard_one() -> None:
    @dataclass
    class Counter:
        count: int = 0

    counter = Counter()
    counter.count = 4
    assert counter == Counter(4)
