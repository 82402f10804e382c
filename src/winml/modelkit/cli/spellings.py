"""Other ways to write an option: an earlier spelling, which a note replaces, and the first argument for `-m`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import click

from winml.modelkit.cli import console

F = TypeVar("F", bound=Callable[..., Any])


def _is_given(value: object) -> bool:
    """Whether the parser found a value; click has a marker of its own for a missing one."""
    return isinstance(value, bool) or (isinstance(value, str | tuple | list) and value != ())


class EarlierOption(click.Option):
    """A spelling of an earlier release: hidden, used as the option or argument `to`, with a note that names it."""

    def __init__(self, words: list[str], *, to: str, now: str, **how: Any) -> None:
        # Eager parameters come first, so the value is moved before the other parameter looks for its own.
        super().__init__(words, hidden=True, expose_value=False, is_eager=True, **how)
        self.to = to
        self.now = now

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        value = opts.get(self.name or "")
        if _is_given(value):
            if _is_given(opts.get(self.to)):
                raise click.UsageError(f"`{self.opts[0]}` cannot be combined with its new form `{self.now}`", ctx)
            cast("dict[str, Any]", opts)[self.to] = value
            if not ctx.resilient_parsing:
                console.say(
                    "note", f"`{self.opts[0]}` is now written `{self.now}`; the next release drops the old form"
                )
        return None, args


def earlier(*words: str, to: str, now: str, **how: Any) -> Callable[[F], F]:
    """A hidden option for an earlier spelling of the parameter `to`, which is now written `now`."""
    return click.option(*words, cls=EarlierOption, to=to, now=now, **how)


class FirstArgument(click.Argument):
    """An argument that may be written instead of an option; both at once are an error."""

    def __init__(self, words: list[str], *, option: str, to: str, **how: Any) -> None:
        super().__init__(words, required=False, expose_value=False, is_eager=True, **how)
        self._option, self._to = option, to

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        value: Any = opts.get(self.name or "")
        if _is_given(value):
            words = [value] if isinstance(value, str) else list(value)
            if _is_given(opts.get(self._to)):
                named = f"`{self._option} {opts[self._to][0]}` and `{words[0]}`"
                raise click.UsageError(f"the model is given twice: {named}", ctx)
            cast("dict[str, Any]", opts)[self._to] = words
        return None, args


def take_one(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str | None:
    """The value of an option that takes one: a second one would replace the first without a word."""
    if len(value) > 1:
        given = " and ".join(f"`{one}`" for one in value)
        raise click.UsageError(f"`{parameter.opts[-1]}` takes one value here but got {given}", context)
    return value[0] if value else None


def option_names(command: click.Command) -> dict[str, str]:
    """Every option of a command as it may be written, and what it is to be written as."""
    found: dict[str, str] = {}
    for parameter in command.get_params(click.Context(command)):
        if isinstance(parameter, EarlierOption):
            found.update(dict.fromkeys(parameter.opts, parameter.now))
        elif isinstance(parameter, click.Option):
            found.update({name: name for name in (*parameter.opts, *parameter.secondary_opts)})
    return found
