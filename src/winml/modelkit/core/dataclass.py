"""`dataclass` as in the standard library, for frozen classes, at a twentieth of the cost of defining one.

The standard decorator compiles six methods and a signature for every class, 0.5 ms each; a command imports some hundred
classes and makes values of a few. Here a class shares its methods with all others, and `__init__` is compiled when the
first value is made. `fields`, `replace`, `asdict`, `is_dataclass` and pattern matching work as with the standard ones.

Only what this package uses is there: no `InitVar`, no slots, no order.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard_dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    # The same name for the type checker, which knows the standard decorator.
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        kw_only: bool = False,
        repr: bool = True,  # noqa: A002 - as the standard decorator calls it
    ) -> Any:
        """Make a class a dataclass; one whose fields change is left to the standard decorator."""
        if cls is None:
            return lambda later: dataclass(later, frozen=frozen, kw_only=kw_only, repr=repr)
        if not frozen:
            return standard_dataclass(cls, kw_only=kw_only, repr=repr)
        return _prepare(cls, kw_only=kw_only, with_repr=repr)


def _prepare(cls: Any, *, kw_only: bool, with_repr: bool) -> Any:
    text = cls.__doc__
    cls.__doc__ = text or cls.__name__  # else the standard decorator asks for the signature, which takes 0.1 ms
    standard_dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=kw_only)(cls)
    cls.__doc__ = text
    own = vars(cls)
    if "__init__" not in own:
        cls.__init__ = _first_init(cls)
    positional = tuple(one.name for one in fields(cls) if one.init and not one.kw_only)
    for name, item in {**_SHARED, "__match_args__": positional}.items():
        if name not in own and (with_repr or name != "__repr__"):
            setattr(cls, name, item)
    if own.get("__hash__") is None:  # None is what Python sets where a class has an `__eq__` of its own
        cls.__hash__ = _hash
    return cls


def _first_init(cls: type) -> Callable[..., None]:
    """An `__init__` that puts the compiled one in its place when it is called."""

    def compile_and_call(self: Any, *args: Any, **named: Any) -> None:
        compiled = _compile_init(cls)
        if vars(cls)["__init__"] is compile_and_call:
            cls.__init__ = compiled  # type: ignore[misc]  # later calls of the class take the compiled one
        compiled(self, *args, **named)

    return compile_and_call


def _compile_init(cls: type) -> Callable[..., None]:
    names: dict[str, Any] = {"__missing": MISSING}
    positional: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for one in fields(cls):
        body.append(f"    __of_self[{one.name!r}] = {_initial(one, names)}")
        if one.init:
            (named if one.kw_only else positional).append(_parameter(one, names))
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    source = f"def __init__({parameters}):\n    __of_self = self.__dict__\n" + "\n".join(body)
    exec(source, names)  # noqa: S102 - made of the names of fields, which Python has already compiled
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _parameter(one: Field[Any], names: dict[str, Any]) -> str:
    if one.default is not MISSING:
        names[f"__default_{one.name}"] = one.default
        return f"{one.name}=__default_{one.name}"
    return one.name if one.default_factory is MISSING else f"{one.name}=__missing"


def _initial(one: Field[Any], names: dict[str, Any]) -> str:
    """The expression of what a field holds at first."""
    if one.default_factory is not MISSING:
        names[f"__make_{one.name}"] = one.default_factory
        made = f"__make_{one.name}()"
        return f"{made} if {one.name} is __missing else {one.name}" if one.init else made
    if one.init:
        return one.name
    names[f"__default_{one.name}"] = one.default
    return f"__default_{one.name}"


@cache
def _compare_key(cls: Any) -> Callable[[Any], Any]:
    """What makes a tuple of the fields that are compared."""
    found = [one.name for one in fields(cls) if one.compare]
    if len(found) > 1:
        return attrgetter(*found)
    return lambda value: tuple(getattr(value, name) for name in found)


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    cls: Any = type(self)
    compared = _compare_key(cls)
    return compared(self) == compared(other)


def _hash(self: Any) -> int:
    cls: Any = type(self)
    return hash(_compare_key(cls)(self))


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_change(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {"__eq__": _eq, "__repr__": _repr, "__setattr__": _refuse_change, "__delattr__": _refuse_removal}
