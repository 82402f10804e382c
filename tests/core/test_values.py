"""Values are read from JSON and written to it by what their classes declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.value_schema import document_schema
from winml.modelkit.core.values import (
    AtLeast,
    AtMost,
    Between,
    MoreThan,
    NotEmpty,
    OneOf,
    Ordered,
    Pattern,
    Unique,
    in_json,
    key,
    read,
    to_json,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Spread:
    """Where a number lies."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise RequestError(f"low {self.low} is above high {self.high}")


@dataclass(frozen=True)
class Where:
    target: str
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """A document with one field of every kind."""

    schema: Literal["winml/test/1"] = "winml/test/1"
    name: Annotated[str, NotEmpty()]
    """What it is called."""
    count: Annotated[int, AtLeast(1), AtMost(10)]
    share: float | None
    place: Where = key(inline=True)
    spread: Spread | None = None
    sizes: Mapping[str, int]
    pairs: tuple[tuple[str, int], ...] = ()
    names: Annotated[tuple[str, ...], Unique()] = ()
    colour: Colour = Colour.RED
    folder: Path = Path("out")
    source: str | None = key("from", omit=True)
    anything: Any = None


WHOLE: dict[str, Any] = {
    "schema": "winml/test/1",
    "name": "a",
    "count": 3,
    "share": None,
    "target": "qnn/npu",
    "simulated": True,
    "spread": {"low": 1, "high": 2.5},
    "sizes": {"x": 1},
    "pairs": [["a", 1], ["b", 2]],
    "names": ["a", "b"],
    "colour": "blue",
    "folder": "build",
    "from": "there",
    "anything": {"k": [1, None]},
}


def test_a_value_is_written_as_it_was_read() -> None:
    value = read(Report, WHOLE)
    assert value.place == Where("qnn/npu", True)
    assert value.pairs == (("a", 1), ("b", 2))
    assert value.colour is Colour.BLUE
    assert value.source == "there"
    assert to_json(value) == {**WHOLE, "folder": str(Path("build"))}


def test_what_has_a_default_may_be_missing_and_an_omitted_key_is_not_written() -> None:
    needed = {k: WHOLE[k] for k in ("schema", "name", "count", "share", "target", "simulated", "sizes")}
    value = read(Report, needed)
    assert value.spread is None
    assert "from" not in to_json(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "winml/other/1"}, "`r.schema` must be 'winml/test/1' but got 'winml/other/1'"),
        ({"name": ""}, "`r.name` must not be empty but got ''"),
        ({"name": 3}, "`r.name` must be text but got 3"),
        ({"count": True}, "`r.count` must be a whole number but got True"),
        ({"count": 0}, "`r.count` must be at least 1 but got 0"),
        ({"count": 11}, "`r.count` must be at most 10 but got 11"),
        ({"share": "x"}, "`r.share` must be a number but got 'x'"),
        ({"share": float("nan")}, "`r.share` must be a number but got nan"),
        ({"spread": {"low": 1}}, "`r.spread.high` is missing"),
        ({"spread": {"low": 3, "high": 1}}, "`r.spread`: low 3 is above high 1"),
        ({"sizes": {"x": "1"}}, "`r.sizes.x` must be a whole number but got '1'"),
        ({"sizes": []}, "`r.sizes` must be an object but got []"),
        ({"pairs": [["a", 1], ["b"]]}, "`r.pairs[1]` must have 2 items but has 1"),
        ({"pairs": [["a", 1], ["b", "2"]]}, "`r.pairs[1][1]` must be a whole number but got '2'"),
        ({"names": ["a", "a"]}, "`r.names` must have no duplicates but got ['a', 'a']"),
        ({"colour": "rad"}, "`r.colour` cannot be 'rad'"),
        ({"simulated": 1}, "`r.simulated` must be true or false but got 1"),
        ({"nmae": 1}, "unknown key `r.nmae`"),
    ],
)
def test_the_first_misfit_is_named_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as raised:
        read(Report, {**WHOLE, **change}, "r")
    assert raised.value.message == message


def test_a_misspelt_key_or_word_gets_the_nearest_as_a_hint() -> None:
    with pytest.raises(RequestError) as raised:
        read(Report, {**WHOLE, "cuont": 1})
    assert str(raised.value.hint).startswith("did you mean `count`?")
    with pytest.raises(DataError) as worded:
        read(Report, {**WHOLE, "colour": "rad"}, error=DataError)
    assert str(worded.value.hint).startswith("did you mean `red`?")


def test_unknown_keys_may_stand_in_what_newer_programs_wrote() -> None:
    assert read(Report, {**WHOLE, "newer": 1}, strict=False) == read(Report, WHOLE)


def test_no_document_is_named_as_such() -> None:
    with pytest.raises(RequestError, match="the document must be an object but got 3"):
        read(Report, 3)


@dataclass(frozen=True)
class Started:
    event: Literal["started"]
    pid: int


@dataclass(frozen=True)
class Ended:
    event: Literal["ended", "killed"]
    code: int | None


Happening = Started | Ended


@dataclass(frozen=True, kw_only=True)
class Yes:
    opens: Literal[True] = True
    nodes: int


@dataclass(frozen=True, kw_only=True)
class No:
    opens: Literal[False] = False
    message: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    answer: Yes | No


def test_a_flag_tells_classes_apart_too() -> None:
    assert read(Asked, {"answer": {"opens": False, "message": "refused"}}) == Asked(answer=No(message="refused"))
    with pytest.raises(RequestError, match="`answer.nodes` is missing"):
        read(Asked, {"answer": {"opens": True}})
    with pytest.raises(RequestError, match="`answer.opens` must be one of True, False but got 'yes'"):
        read(Asked, {"answer": {"opens": "yes"}})


def test_classes_of_a_union_are_told_apart_by_their_constants() -> None:
    assert read(Happening, {"event": "started", "pid": 3}) == Started("started", 3)  # type: ignore[arg-type]
    assert read(Happening, {"event": "killed", "code": None}) == Ended("killed", None)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="`e.event` must be one of 'started', 'ended', 'killed' but got 'lost'"):
        read(Happening, {"event": "lost"}, "e")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="`e.pid` must be a whole number but got None"):
        read(Happening, {"event": "started", "pid": None}, "e")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Limits:
    above: Annotated[float, MoreThan(0)]
    digest: Annotated[str, Pattern("[0-9a-f]+", "hexadecimal digits")]


def test_limits_are_held() -> None:
    assert read(Limits, {"above": 0.1, "digest": "0f"}).above == 0.1
    with pytest.raises(RequestError, match="`above` must be more than 0 but got 0"):
        read(Limits, {"above": 0, "digest": "0f"})
    with pytest.raises(RequestError, match="`digest` must be hexadecimal digits but got 'xy'"):
        read(Limits, {"above": 1, "digest": "xy"})


@dataclass(frozen=True)
class Weighted:
    fact: Annotated[str, Pattern("nodes|ops[.].+", "the name of a fact", known=("nodes", "ops.OP"))]
    weight: float = key(internal=True, default=1.0)
    """What only the program knows."""


def test_text_that_is_none_of_the_known_suggests_the_nearest() -> None:
    with pytest.raises(RequestError, match="`fact` must be the name of a fact but got 'noeds'") as caught:
        read(Weighted, {"fact": "noeds"})
    assert caught.value.hint is not None
    assert "`nodes`" in caught.value.hint


def test_what_is_internal_is_neither_written_nor_read() -> None:
    assert to_json(Weighted("nodes", 3.0)) == {"fact": "nodes"}
    assert read(Weighted, {"fact": "nodes"}).weight == 1.0
    with pytest.raises(RequestError, match="unknown key `weight`"):
        read(Weighted, {"fact": "nodes", "weight": 2.0})
    schema = document_schema("test", "A test", [Weighted])
    assert set(schema["$defs"]["Weighted"]["properties"]) == {"fact"}


@dataclass(frozen=True)
class Choices:
    share: Annotated[float, Between(0, 1)] = 0.5
    ends: Annotated[tuple[float, float], Ordered()] = (0, 1)
    word: Annotated[str, OneOf(("new", "other"), earlier=(("old", "new"),))] = "new"


def test_words_of_earlier_versions_are_read_as_those_of_now_and_shares_as_floats() -> None:
    found = read(Choices, {"share": 1, "ends": [1, 2], "word": "old"})
    assert (found.word, found.ends) == ("new", (1, 2))
    assert isinstance(found.share, float)
    for value, message in (
        ({"share": 2}, "`share` must be a number from 0 to 1 but got 2"),
        ({"ends": [2, 1]}, r"`ends` must give the lower value first but got \[2, 1\]"),
        ({"word": 1}, "`word` cannot be 1"),
    ):
        with pytest.raises(RequestError, match=message):
            read(Choices, value)
    schema = document_schema("test", "A test", [Choices])["$defs"]["Choices"]["properties"]
    assert schema["word"]["enum"] == ["new", "other"]


def test_the_schema_takes_what_the_reader_takes_and_refuses_what_it_refuses() -> None:
    schema = document_schema("test", "A test", [Report], failure=True)
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid(to_json(read(Report, WHOLE)))
    for change in ({"name": ""}, {"count": 11}, {"spread": {"low": 1}}, {"colour": "rad"}, {"nmae": 1}, {"names": [1]}):
        assert not check.is_valid({**WHOLE, **change}), change
    error = {"code": "failed", "message": "m", "hint": None, "exit": 1}
    assert check.is_valid({"schema": "winml/test/1", "ok": False, "error": error, "name": "so far"})
    report = schema["$defs"]["Report"]
    assert report["description"] == "A document with one field of every kind."
    assert report["properties"]["name"]["description"] == "What it is called."


def test_what_is_no_json_is_a_bug() -> None:
    with pytest.raises(TypeError, match="bytes cannot be written as JSON"):
        to_json({"a": [b"x"]})


@dataclass(frozen=True)
class Names:
    first: str
    last: str


@dataclass(frozen=True)
class Person:
    """Written as two names."""

    name: str

    def to_value(self) -> Names:
        return Names(*self.name.split(" "))

    @classmethod
    def from_value(cls, value: Names) -> Person:
        if not value.last:
            raise RequestError("a last name is needed")
        return cls(f"{value.first} {value.last}")


@dataclass(frozen=True)
class Order:
    buyer: Person = key(inline=True)
    seller: Person
    prices: tuple[int, ...] = ()

    @property
    @in_json
    def total(self) -> int:
        """What all of it costs."""
        return sum(self.prices)


ORDER = {
    "first": "Ada",
    "last": "Byron",
    "seller": {"first": "Bob", "last": "Smith"},
    "prices": [1, 2],
    "total": 3,
}


def test_a_property_is_written_with_the_fields_and_made_anew_when_read() -> None:
    order = read(Order, {**ORDER, "total": 99})
    assert order.total == 3
    assert to_json(order) == ORDER
    assert read(Order, {k: v for k, v in ORDER.items() if k != "total"}) == order


def test_a_class_may_be_written_as_another_one() -> None:
    assert read(Order, ORDER).buyer == Person("Ada Byron")
    with pytest.raises(RequestError, match="`o.seller.first` is missing"):
        read(Order, {**ORDER, "seller": {"last": "Smith"}}, "o")
    with pytest.raises(RequestError, match="`o.seller`: a last name is needed"):
        read(Order, {**ORDER, "seller": {"first": "Bob", "last": ""}}, "o")


def test_everything_is_there_in_what_only_we_write() -> None:
    schema = document_schema("test", "A test", [Order], complete=True)
    order = schema["$defs"]["Order"]
    assert order["required"] == ["first", "last", "prices", "seller", "total"]
    assert order["properties"]["total"] == {"description": "What all of it costs.", "type": "integer"}
    jsonschema.Draft202012Validator(schema).validate(ORDER)
    assert "prices" not in document_schema("test", "A test", [Order])["$defs"]["Order"]["required"]


def test_two_classes_of_one_name_cannot_be_in_one_schema() -> None:
    def make() -> type:
        @dataclass(frozen=True)
        class Names:
            names: str

        return Names

    with pytest.raises(TypeError, match="both have a class Names"):
        document_schema("test", "A test", [Order, make()])
