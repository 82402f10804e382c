"""Runs one click command and maps every way it can end to an exit code of the contract."""

from __future__ import annotations

import contextlib
import logging
import re
from typing import TextIO

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.options import HELP
from winml.modelkit.cli.spellings import option_names
from winml.modelkit.core import plain_text
from winml.modelkit.core.errors import EXIT_BUG, Interrupted, ModelkitError, RequestError, of_name, of_system
from winml.modelkit.core.suggest import nearest
from winml.modelkit.worker.client import WorkerBug

_HELP = frozenset((*HELP["help_option_names"], "--help-all"))


def _bug(error: BaseException, name: str, *, as_json: bool) -> int:
    import traceback

    text = str(error) if isinstance(error, WorkerBug) else "".join(traceback.format_exception(error))
    if as_json:
        found = {"code": "bug", "message": text.strip().splitlines()[-1], "hint": None, "exit": EXIT_BUG}
        with contextlib.suppress(OSError):  # the bug keeps its exit code
            console.data_json({"schema": f"winml/{name}/1", "ok": False, "error": found})
    console.write_lines(text)
    console.say("error", "this is a bug in winml; report it with the lines above")
    return EXIT_BUG


def _system(error: OSError) -> ModelkitError:
    found = of_system(error)
    if found is None:
        raise error
    return found


def _usage(error: click.ClickException, prog: str, args: list[str]) -> ModelkitError:
    """A usage error of click as one of ours, with the nearest name in its hint."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        prog = context.command_path  # `winml feed list` rather than `winml feed`
    near = None if context is None else _nearest(error, context, args)
    meant = "" if near is None else f"did you mean `{near}`? "
    message = error.message if isinstance(error, _NO_SUCH) else error.format_message()
    return RequestError(message[:1].lower() + message[1:].rstrip("."), hint=f"{meant}`{prog} --help` shows the options")


_NO_SUCH: tuple[type[click.UsageError], ...] = tuple(
    getattr(click.exceptions, name) for name in ("NoSuchOption", "NoSuchCommand") if hasattr(click.exceptions, name)
)
"""Errors that click itself would extend by its own suggestions; older releases have no `NoSuchCommand`."""


def _nearest(error: click.ClickException, context: click.Context, args: list[str]) -> str | None:
    """What was probably meant instead of an unknown option, command or choice."""
    if isinstance(error, click.NoSuchOption):
        # Without the dashes, which all of them have in common.
        known = {name[2:]: now for name, now in option_names(context.command).items() if name.startswith("--")}
        wrong = error.option_name
        if not wrong.startswith("--"):  # `-iterations`, which click reads as `-i` and more
            wrong = next((word for word in args if word.startswith(wrong) and len(word) > len(wrong)), wrong)
        near = nearest(wrong.lstrip("-").partition("=")[0], known)
        return None if near is None else known[near]
    if isinstance(error, click.BadParameter) and error.param is not None:
        given = _NOT_A_CHOICE.match(error.message)
        choices = getattr(error.param.type, "choices", ())
        return None if given is None else nearest(given["value"], map(str, choices))
    if isinstance(context.command, click.Group):
        depth = context.command_path.count(" ") - 1  # `winml support knowledge` is one below `winml support`
        words = [word for word in args if not word.startswith("-")][depth:]
        return nearest(words[0], context.command.commands) if words else None
    return None


_NOT_A_CHOICE = re.compile(r"'(?P<value>.*)' is not (?:one of |')", re.DOTALL)


class _SafeFormatter(logging.Formatter):
    """Escapes names in the log lines of libraries."""

    def format(self, record: logging.LogRecord) -> str:
        return plain_text.lines(super().format(record))


class _LogHandler(logging.StreamHandler[TextIO]):
    """Writes the log lines of libraries above a line of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        with console.above_progress():
            super().emit(record)


def invoke(command: click.Command, prog: str, name: str, args: list[str], given: object = None) -> int:
    """Run `command` with `args` and return the exit code; `given` is the object of its context."""
    handler = _LogHandler()
    handler.setFormatter(_SafeFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    as_json = "--json" in args
    console.set_quiet(any(word == "--quiet" or word.startswith("-q") for word in args))
    try:
        try:
            # `command.main` would treat every broken pipe as one of stdout, and exit.
            with command.make_context(prog, list(args), obj=given) as context:
                command.invoke(context)
            return 0
        except OSError as error:
            if console.has_no_reader(error) and _HELP.intersection(args):
                return console.abandon_stdout()
            return console.show_error(name, _system(error), as_json=as_json)
        except UnicodeEncodeError as error:
            raise of_name(error) or error from error
    except ModelkitError as error:
        return console.show_error(name, error, as_json=as_json)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return console.show_error(name, _usage(error, prog, args), as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        return console.show_error(name, Interrupted("interrupted"), as_json=as_json)
    except Exception as error:  # noqa: BLE001 - the one place where a bug becomes its exit code
        return _bug(error, name, as_json=as_json)
