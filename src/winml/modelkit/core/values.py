"""Values and their JSON: a dataclass says what an object holds, and reading and writing follow from it.

A value is a frozen dataclass whose fields are declared with types that JSON has: text, numbers, flags, null, `Literal`,
lists (`tuple[X, ...]`), objects (`Mapping[str, X]`), paths, other values, and unions of these. `Annotated` adds limits
(`AtLeast`, `Pattern`, ...), `key` says how a field is written when it is not simply `"name": value`. A constant such as
`schema: Literal["winml/perf/1"] = "winml/perf/1"` has to be there in what is read. The published schemas are made from
the same declarations (`core/value_schema.py`).

What is made from other fields is a property: `@property @in_json` writes it, too, and reading computes it again.
A class that is written as another one has `to_value`, whose annotation names that class, and `from_value`.

Only the standard library is used: workers of private environments have nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError, RequestError
from winml.modelkit.core.suggest import did_you_mean

T = TypeVar("T")
Reader = Callable[[Any, bool], Any]
"""Takes JSON and whether unknown keys are errors; returns the value or raises `_Misfit`."""

_SCALARS = frozenset({str, int, float, bool, NoneType})
_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


@dataclass(frozen=True)
class AtLeast:
    limit: float


@dataclass(frozen=True)
class MoreThan:
    limit: float


@dataclass(frozen=True)
class AtMost:
    limit: float


@dataclass(frozen=True)
class Between:
    """A number from `low` to `high`, read as a float also where it is written without a point."""

    low: float
    high: float


@dataclass(frozen=True)
class Ordered:
    """Two numbers, the lesser first."""


@dataclass(frozen=True)
class OneOf:
    """Text that is one of `words`; `earlier` are values of earlier versions and what they are now."""

    words: tuple[str, ...]
    earlier: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Pattern:
    """Text that a regular expression describes from its first to its last character; `words` say so in an error.

    The hint of the error is the nearest of the `known` texts.
    """

    regex: str
    words: str
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotEmpty:
    """Text, a list or an object with something in it."""


@dataclass(frozen=True)
class Unique:
    """A list in which nothing is given twice."""


@dataclass(frozen=True)
class KnownKeys:
    """An object of others, of which some keys are known: fields of a class that is for documentation only."""

    form: Any


Count = Annotated[int, AtLeast(0)]
Digest = Annotated[str, Pattern("sha256:[0-9a-f]{64}", "`sha256:` and 64 hexadecimal digits")]
Text = Annotated[str, NotEmpty()]
Names = Annotated[tuple[Text, ...], Unique()]


def key(
    name: str | None = None,
    *,
    omit: bool = False,
    inline: bool = False,
    internal: bool = False,
    default: Any = MISSING,
    default_factory: Any = MISSING,
) -> Any:
    """A field that is not written as `"its name": value`.

    `name`: another key. `omit`: None is written as no key at all, and a missing key is read as None. `inline`: the
    fields of the value stand among those of the object around it. `internal`: JSON does not have it, so it needs a
    default.
    """
    if omit and default is MISSING:
        default = None
    settings = {"key": name, "omit": omit, "inline": inline, "internal": internal}
    if default_factory is not MISSING:
        return field(default_factory=default_factory, metadata=settings)
    return field(default=default, metadata=settings)


F = TypeVar("F", bound=Callable[..., Any])


def in_json(getter: F) -> F:
    """Marks the function of a property that is written with the fields."""
    getter.in_json = True  # type: ignore[attr-defined]  # functions take attributes
    return getter


@dataclass(frozen=True)
class Entry:
    """A field of a value class, as it is read and written."""

    attribute: str
    key: str
    form: Any
    required: bool
    omit: bool
    inline: bool
    derived: bool = False
    """A property, made from the fields."""


@cache
def entries(cls: type) -> tuple[Entry, ...]:
    """The fields of a value class that JSON has, then the properties that are written with them."""
    other = json_class(cls)
    if other is not None:
        return entries(other)
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for one in fields(cls):
        if one.metadata.get("internal"):
            continue
        form = hints[one.name]
        defaulted = one.default is not MISSING or one.default_factory is not MISSING
        found.append(
            Entry(
                attribute=one.name,
                key=one.metadata.get("key") or one.name,
                form=form,
                required=not defaulted or is_constant(form),
                omit=one.metadata.get("omit", False),
                inline=one.metadata.get("inline", False),
            )
        )
    for name in dir(cls):
        getter = getattr(getattr(cls, name), "fget", None)
        if getattr(getter, "in_json", False):
            form = get_type_hints(getter, include_extras=True)["return"]
            found.append(Entry(name, name, form, required=True, omit=False, inline=False, derived=True))
    return tuple(found)


@cache
def json_class(cls: Any) -> type | None:
    """The class that values of a class are written as, where it is another one."""
    return get_type_hints(cls.to_value)["return"] if hasattr(cls, "to_value") else None


def is_constant(form: Any) -> bool:
    """Whether only one value fits."""
    return get_origin(form) is Literal and len(get_args(form)) == 1


def keys(cls: type) -> dict[str, Entry]:
    """The keys of an object that holds a value of this class, those of inlined values among them."""
    found = {}
    for entry in entries(cls):
        if entry.inline:
            found.update(keys(entry.form))
        else:
            found[entry.key] = entry
    return found


# Writing


def to_json(value: Any) -> Any:
    """A value as JSON holds it: dataclasses as objects, tuples as lists."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if is_dataclass(kind):
        return _object_json(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    raise TypeError(f"{kind.__name__} cannot be written as JSON")


def _object_json(value: Any) -> Any:
    kind: Any = type(value)
    if json_class(kind) is not None:
        return to_json(value.to_value())
    if writes_itself(kind):
        return to_json(value.to_json())
    return fields_json(value)


def writes_itself(cls: Any) -> bool:
    """Whether a class says itself how it is written, unlike a result (`core/result.py`)."""
    return hasattr(cls, "to_json") and not getattr(cls, "written_by_fields", False)


def fields_json(value: Any) -> dict[str, Any]:
    """A value as the object that its fields and properties say."""
    found: dict[str, Any] = {}
    kind: Any = type(value)
    for entry in entries(kind):
        item = getattr(value, entry.attribute)
        if entry.inline:
            found.update(to_json(item) or {})
        elif item is not None or not entry.omit:
            found[entry.key] = to_json(item)
    return found


# Reading


class _Misfit(Exception):
    """What does not fit, found on the way back from its place to the whole."""

    def __init__(self, text: Callable[[str], str], hint: str | None = None) -> None:
        super().__init__()
        self.text = text
        self.hint = hint
        self.path: list[str] = []


def _name(where: str) -> str:
    return f"`{where}`" if where else "the document"


def _must(what: str, value: Any, hint: str | None = None) -> _Misfit:
    return _Misfit(lambda where: f"{_name(where)} must {what} but got {value!r:.200}", hint)


def _where(root: str, path: list[str]) -> str:
    text = root
    for part in reversed(path):
        text += part if part.startswith("[") or not text else f".{part}"
    return text


def read(
    form: type[T], value: Any, where: str = "", *, strict: bool = True, error: type[ModelkitError] = RequestError
) -> T:
    """The value that JSON holds; an error names the first place that does not fit, with `where` before it.

    Without `strict`, keys that the class does not know may stand in objects.
    """
    try:
        return cast("T", reader(cast("Any", form))(value, strict))
    except _Misfit as misfit:
        raise error(misfit.text(_where(where, misfit.path)), hint=misfit.hint) from None


@cache
def reader(form: Any) -> Reader:
    """What reads one type; made once."""
    if form is Any:
        return lambda value, strict: value
    if form in (None, *_PLAIN):
        return _scalar_reader(form or NoneType)
    origin = get_origin(form) or form
    if origin is Annotated:
        return _reader_with_limits(form)
    if origin in (Union, UnionType):
        return _union_reader(get_args(form))
    if origin is Literal:
        return _literal_reader(get_args(form))
    if origin in (tuple, list, Sequence):
        return _list_reader(origin, get_args(form))
    if origin in (dict, Mapping):
        return _mapping_reader(get_args(form)[1])
    return _class_reader(form)


def _class_reader(form: Any) -> Reader:
    other = json_class(form)
    if other is not None:
        plain = reader(other)
        return lambda value, strict: _call(form.from_value, plain(value, strict))
    if hasattr(form, "from_json"):
        return _own_reader(form.from_json)
    if is_dataclass(form):
        return _object_reader(cast("type", form))
    if isinstance(form, type) and issubclass(form, Enum):
        plain = _literal_reader(tuple(member.value for member in form))
        return lambda value, strict: form(plain(value, strict))
    if form is Path:
        return lambda value, strict: Path(reader(str)(value, strict))
    raise TypeError(f"{form!r} is not a JSON type")


def _own_reader(from_json: Callable[[Any], Any]) -> Reader:
    def own(value: Any, strict: bool) -> Any:
        try:
            return from_json(value)
        except ModelkitError as error:
            # Named by its text alone, as `error` is bound for this block only.
            message, hint = error.message, error.hint
            raise _Misfit(lambda where: f"{_name(where)}: {message}", hint) from None

    return own


def _scalar_reader(form: type) -> Reader:
    # A flag is an int to Python, and a whole number is a number.
    kinds = (int, float) if form is float else (form,)

    def scalar(value: Any, strict: bool) -> Any:
        if type(value) not in kinds or (type(value) is float and not math.isfinite(value)):
            raise _must(f"be {_PLAIN[form]}", value)
        return value

    return scalar


def _literal_reader(words: tuple[Any, ...]) -> Reader:
    def literal(value: Any, strict: bool) -> Any:
        if any(value == word and type(value) is type(word) for word in words):
            return value
        if len(words) == 1:
            raise _must(f"be {words[0]!r}", value)
        known = [str(word) for word in words]
        hint = did_you_mean(value, known) if isinstance(value, str) else f"known: {', '.join(known)}"
        raise _Misfit(lambda where: f"{_name(where)} cannot be {value!r:.200}", hint)

    return literal


def _reader_with_limits(form: Any) -> Reader:
    inner, *limits = get_args(form)
    if isinstance(limits[0], OneOf):
        literal, now = _literal_reader(limits[0].words), dict(limits[0].earlier)
        return lambda value, strict: literal(now.get(value, value) if isinstance(value, str) else value, strict)
    read_inner = reader(inner)

    def read_limited(value: Any, strict: bool) -> Any:
        found = read_inner(value, strict)
        for limit in limits:
            problem = _beyond(limit, found)
            if problem is not None:
                known = limit.known if isinstance(limit, Pattern) else ()
                raise _must(problem, value, did_you_mean(found, known) if known else None)
            if isinstance(limit, Between):
                found = float(found)
        return found

    return read_limited


def _beyond(limit: Any, value: Any) -> str | None:
    """What a value that is past a limit must do instead."""
    match limit:
        case AtLeast() if value < limit.limit:
            return f"be at least {limit.limit:g}"
        case MoreThan() if value <= limit.limit:
            return f"be more than {limit.limit:g}"
        case AtMost() if value > limit.limit:
            return f"be at most {limit.limit:g}"
        case Between() if not limit.low <= value <= limit.high:
            return f"be a number from {limit.low:g} to {limit.high:g}"
        case Ordered() if value[0] > value[1]:
            return "give the lower value first"
        case Pattern() if re.fullmatch(limit.regex, value) is None:
            return f"be {limit.words}"
        case NotEmpty() if not value:
            return "not be empty"
        case Unique() if _repeats(value):
            return "have no duplicates"
    return None


def _repeats(items: Sequence[Any]) -> bool:
    try:
        return len(set(items)) != len(items)
    except TypeError:  # objects cannot be hashed
        return any(item in items[:i] for i, item in enumerate(items))


def _list_reader(origin: Any, args: tuple[Any, ...]) -> Reader:
    made: Callable[..., Any] = list if origin is list else tuple
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        readers = [reader(one) for one in args]
    else:
        readers = []
        each = reader(args[0])

    def items(value: Any, strict: bool) -> Any:
        if not isinstance(value, list | tuple):
            raise _must("be a list", value)
        if readers and len(readers) != len(value):
            count = len(value)
            raise _Misfit(lambda where: f"{_name(where)} must have {len(readers)} items but has {count}")
        found = []
        for index, item in enumerate(value):
            try:
                found.append((readers[index] if readers else each)(item, strict))
            except _Misfit as misfit:
                misfit.path.append(f"[{index}]")
                raise
        return made(found)

    return items


def _mapping_reader(of: Any) -> Reader:
    each = reader(of)

    def mapping(value: Any, strict: bool) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _must("be an object", value)
        found = {}
        for name, item in value.items():
            try:
                found[name] = each(item, strict)
            except _Misfit as misfit:
                misfit.path.append(str(name)[:200])
                raise
        return found

    return mapping


def _tag(classes: Sequence[Any]) -> str | None:
    """The key whose constants distinguish classes."""
    if len(classes) < 2:
        return None
    words: dict[str, list[Any]] = {}
    for cls in classes:
        for name, entry in keys(cls).items():
            if get_origin(entry.form) is Literal:
                words.setdefault(name, []).extend(get_args(entry.form))
    holders = {name: sum(1 for c in classes if name in keys(c)) for name in words}
    return next((n for n, w in words.items() if holders[n] == len(classes) and len(set(w)) == len(w)), None)


def _union_reader(forms: tuple[Any, ...]) -> Reader:
    classes: list[Any] = [one for one in forms if is_dataclass(one) and not hasattr(one, "from_json")]
    tag = _tag(classes)
    tagged: dict[Any, Reader] = {}
    if tag is not None:
        for cls in classes:
            entry = keys(cls)[tag]
            tagged.update(dict.fromkeys(get_args(entry.form), reader(cls)))
    # The most telling problem is that of the form which is not null.
    ordered = sorted((one for one in forms if not (tagged and one in classes)), key=lambda one: one is NoneType)
    readers = [reader(one) for one in ordered]

    def choose(value: Any, strict: bool) -> Any:
        if tagged and isinstance(value, dict):
            word = value.get(tag)
            if not isinstance(word, str | bool) or word not in tagged:
                known = ", ".join(repr(w) for w in tagged)
                raise _misfit_at(str(tag), lambda where: f"`{where}` must be one of {known} but got {word!r:.200}")
            return tagged[word](value, strict)
        first: _Misfit | None = None
        for one in readers:
            try:
                return one(value, strict)
            except _Misfit as misfit:
                first = first or misfit
        raise first or _must("be an object", value)

    return choose


def _object_reader(cls: type) -> Reader:
    plan = [(entry, reader(entry.form)) for entry in entries(cls) if not (entry.inline or entry.derived)]
    inlined = [(entry.attribute, reader(entry.form), keys(entry.form)) for entry in entries(cls) if entry.inline]
    known = keys(cls)

    def value_object(value: Any, strict: bool) -> Any:
        if not isinstance(value, dict):
            raise _must("be an object", value)
        unknown = next((name for name in value if name not in known), None) if strict else None
        if unknown is not None:
            raise _misfit_at(str(unknown)[:200], lambda where: f"unknown key `{where}`", did_you_mean(unknown, known))
        found = {}
        for entry, read_one in plan:
            if entry.key in value or entry.required:
                found[entry.attribute] = _read_key(entry.key, read_one, value, strict)
        for attribute, read_one, names in inlined:
            found[attribute] = read_one({name: value[name] for name in names if name in value}, strict)
        return _call(cls, **found)

    return value_object


def _read_key(name: str, read_one: Reader, value: dict[str, Any], strict: bool) -> Any:
    if name not in value:
        raise _misfit_at(name, lambda where: f"`{where}` is missing")
    try:
        return read_one(value[name], strict)
    except _Misfit as misfit:
        misfit.path.append(name)
        raise


def _call(make: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The value; an error of its class is reported with its place."""
    try:
        return make(*args, **named)
    except ModelkitError as error:
        message, hint = error.message, error.hint
        raise _Misfit(lambda where: f"`{where}`: {message}" if where else message, hint) from None


def _misfit_at(name: str, text: Callable[[str], str], hint: str | None = None) -> _Misfit:
    misfit = _Misfit(text, hint)
    misfit.path.append(name)
    return misfit
