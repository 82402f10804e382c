"""Runs one click command and maps every way it can end to an exit code of the contract."""

from __future__ import annotations

import contextlib
import logging
from typing import TextIO

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.options import HELP
from winml.modelkit.core import plain_text
from winml.modelkit.core.errors import EXIT_BUG, Interrupted, ModelkitError, RequestError, of_name, of_system
from winml.modelkit.worker.client import WorkerBug

_HELP = frozenset(HELP["help_option_names"])


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


def _usage(error: click.ClickException, prog: str) -> ModelkitError:
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        prog = error.ctx.command_path  # `winml feed list` rather than `winml feed`
    return RequestError(message[:1].lower() + message[1:].rstrip("."), hint=f"`{prog} --help` shows the options")


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
        return console.show_error(name, _usage(error, prog), as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        return console.show_error(name, Interrupted("interrupted"), as_json=as_json)
    except Exception as error:  # noqa: BLE001 - the one place where a bug becomes its exit code
        return _bug(error, name, as_json=as_json)
