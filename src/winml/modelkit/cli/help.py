"""The classes of all commands: click's, with winml's help.

The page itself is imported when it is shown, because every command imports this module.
"""

from __future__ import annotations

import click


def _page(context: click.Context, *, everything: bool) -> str:
    from winml.modelkit.cli.help_page import help_text

    return help_text(context, everything=everything)


def _show_all(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(_page(context, everything=True))
        context.exit()


_help_all_option = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="Show all options."
)


class _Helped(click.Command):
    """What commands and groups share."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), _help_all_option]

    def get_help(self, ctx: click.Context) -> str:
        return _page(ctx, everything=False)


class Command(_Helped):
    """A command of winml."""


class Group(_Helped, click.Group):
    """A command with sub-commands."""

    command_class = Command
    group_class = type

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"`{ctx.command_path}` needs one of: {', '.join(self.commands)}", ctx)
        return super().parse_args(ctx, args)
