"""The program: finds the command in a literal table, runs it, turns errors into messages and exit codes.

The table is all that `winml --help` needs, so that help imports neither click nor anything slow.
"""

from __future__ import annotations

import os
import sys
from typing import Any

COMMANDS: dict[str, tuple[str, str]] = {
    "sys": ("winml.modelkit.cli.commands.sys", "Show this machine's devices and execution providers."),
    "init": ("winml.modelkit.cli.commands.init", "Write build configs and a CI workflow for a model."),
    "inspect": ("winml.modelkit.cli.commands.inspect", "Show a model's inputs, outputs, operators and size."),
    "analyze": ("winml.modelkit.cli.commands.analyze", "Show which nodes a target supports, and why not the others."),
    "export": ("winml.modelkit.cli.commands.export", "Export a Hugging Face model to ONNX and verify its outputs."),
    "catalog": ("winml.modelkit.cli.commands.catalog", "Show model families, their tasks and proven results."),
    "config": ("winml.modelkit.cli.commands.config", "Write a complete build config."),
    "build": ("winml.modelkit.cli.commands.build", "Export, optimize, quantize and compile a model for a target."),
    "optimize": ("winml.modelkit.cli.commands.optimize", "Run graph passes on a model and compare its outputs."),
    "quantize": ("winml.modelkit.cli.commands.quantize", "Quantize a model and compare its outputs."),
    "perf": ("winml.modelkit.cli.commands.perf", "Measure the latency of a model on a target."),
    "compare": ("winml.modelkit.cli.commands.compare", "Test whether a candidate is faster than a base."),
    "eval": ("winml.modelkit.cli.commands.eval", "Measure the accuracy of a model, alone or against a reference."),
    "run": ("winml.modelkit.cli.commands.run", "Run a model once and say what it answers."),
    "serve": ("winml.modelkit.cli.commands.serve", "Answer requests with a model over HTTP on this machine."),
    "debug": ("winml.modelkit.cli.commands.debug", "Find the layers that lose the accuracy of a quantized model."),
    "autoconfig": ("winml.modelkit.cli.commands.autoconfig", "Search for the fastest config that is still accurate."),
    "compile": ("winml.modelkit.cli.commands.compile", "Compile one or more models for an execution provider."),
    "trace": ("winml.modelkit.cli.commands.trace", "Compare operator traces."),
    "report": ("winml.modelkit.cli.commands.report", "Write a page with the pictures and numbers of a run."),
    "dashboard": ("winml.modelkit.cli.commands.dashboard", "Show the runs below a folder in a browser."),
    "kb": ("winml.modelkit.cli.commands.kb", "Show, judge and replay findings about execution providers."),
    "support": ("winml.modelkit.cli.commands.support", "Probe, produce and review support for a model."),
    "skill": ("winml.modelkit.cli.commands.skill", "Check skills for agents against this program's commands."),
    "ep": ("winml.modelkit.cli.commands.ep", "Install execution providers in private environments."),
    "matrix": ("winml.modelkit.cli.commands.matrix", "Build many models for many targets; publish and resume."),
    "node": ("winml.modelkit.cli.commands.node", "Join this machine to a cluster, or run its scheduler."),
    "feed": ("winml.modelkit.cli.commands.feed", "Publish build folders and fetch them, verified by digest."),
    "package": ("winml.modelkit.cli.commands.package", "Make and verify packages that applications can use."),
    "cache": ("winml.modelkit.cli.commands.cache", "Show, verify and shrink the cache of stage results."),
    "completion": ("winml.modelkit.cli.commands.completion", "Print the script that completes commands in a shell."),
}
"""Command name -> module that defines it as `command`, and its one-line help."""

JOBS: dict[str, tuple[str, ...]] = {
    "Inspect and measure": ("inspect", "analyze", "perf", "compare", "eval", "debug", "trace", "report", "dashboard"),
    "Use": ("run", "serve"),
    "Build": ("init", "build", "config", "export", "optimize", "quantize", "compile"),
    "Search": ("autoconfig", "kb"),
    "Publish": ("package", "matrix", "feed"),
    "Support models": ("catalog", "support", "skill"),
    "This machine": ("sys", "ep", "node", "cache", "completion"),
}
"""What commands are for, in the order of the help; a test finds a command without a job."""

_SUMMARY = "Takes a model to the fastest accurate artifact for every ONNX Runtime execution provider, and proves it."
_OPTIONS = (
    ("-V, --version", "Show the versions of this program and what it runs on."),
    ("-h, --help", "Show this help and exit; `help COMMAND` shows everything about a command."),
    ("--help-all", "Also show exit codes and environment variables."),
)
_EVERY_COMMAND = (
    "Every command takes --json (one JSON object on stdout, also on failure), -q (no progress and notes), --help (its "
    "common options, with examples) and --help-all (all options)."
)
_EXAMPLES = ("sys", "inspect --sample", "perf -m model.onnx --target qnn/npu", "help perf")


def help_text(program: str, *, everything: bool = False) -> str:
    """The help of the program, as wide as the terminal."""
    from winml.modelkit.cli import help_layout as layout

    width = layout.terminal_width()
    column = layout.column_width(COMMANDS, width)
    blocks = [layout.usage(program, ("COMMAND", "[OPTIONS]"), width), layout.paragraph(_SUMMARY, width)]
    for job, names in JOBS.items():
        blocks.append(layout.section(job, [(name, COMMANDS[name][1]) for name in names], column, width))
    blocks.append(layout.section("Options", _OPTIONS, column, width))
    if everything:
        from winml.modelkit.cli.reference import reference_text

        blocks.append(reference_text(width))
    blocks.append(layout.paragraph(_EVERY_COMMAND, width, indent=""))
    blocks.append(layout.examples([f"{program} {words}" for words in _EXAMPLES], width))
    return "\n".join(blocks)


def _program() -> str:
    name = os.path.basename(sys.argv[0]).removesuffix(".exe")  # noqa: PTH119 - pathlib costs more than all of help
    return name if name in ("winml", "wmk") else "winml"


def _print(text: str) -> int:
    """Write text as it is; a closed pipe or a failed write is handled as for any result."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        from winml.modelkit.cli import console
        from winml.modelkit.core.errors import of_system

        try:
            console.data(text)
        except OSError as error:
            found = of_system(error)
            if found is None:
                raise
            return _fail("error", found, as_json=False)
    return 0


def _fail(command: str, error: Any, *, as_json: bool) -> int:
    from winml.modelkit.cli import console

    return console.show_error(command, error, as_json=as_json)


def _start_first_process(name: str, args: list[str]) -> Any:
    """The processes of a measurement, the first of them started before click is imported; None for other commands."""
    if name != "perf" or not {"-h", "--help", "--help-all"}.isdisjoint(args):
        return None
    from winml.modelkit.core.errors import ModelkitError
    from winml.modelkit.measuring.processes import Processes

    try:
        return Processes()
    except (OSError, ModelkitError):
        return None  # the command starts it again and reports why that is not possible


def _command(name: str, args: list[str]) -> int:
    """Run a command; its errors end up on stderr, or as JSON on stdout."""
    started = _start_first_process(name, args)
    try:
        from importlib import import_module

        from winml.modelkit.cli.run import invoke

        return invoke(import_module(COMMANDS[name][0]).command, f"{_program()} {name}", name, args, started)
    finally:
        if started is not None:
            started.close()


def _unknown(name: str, *, as_json: bool) -> int:
    from winml.modelkit.core.errors import RequestError
    from winml.modelkit.core.suggest import did_you_mean

    known = ("--help", "--help-all", "--version") if name.startswith("-") else tuple(COMMANDS)
    what = "option" if name.startswith("-") else "command"
    return _fail("error", RequestError(f"unknown {what} `{name}`", hint=did_you_mean(name, known)), as_json=as_json)


def _open_closed_streams() -> None:
    """Open the null device for a process that was started without stdout or stderr (`>&-`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end


def _choose_encoding() -> None:
    """Write UTF-8 to pipes and files on Windows; elsewhere, replace characters that cannot be shown.

    The default there is a code page. An encoding set by the user (`PYTHONIOENCODING`) is kept.
    """
    for stream in (sys.stdout, sys.stderr):
        change = getattr(stream, "reconfigure", None)
        if change is None:
            continue  # a stream in a test
        if sys.platform == "win32" and not stream.isatty() and not os.environ.get("PYTHONIOENCODING"):
            change(encoding="utf-8")
        if stream.errors == "strict":
            change(errors="replace")


def _listen_to_ctrl_c() -> None:
    """Let Ctrl-C stop the program where a user can press it, even if the parent process had it ignored.

    A shell starts background jobs that way, without a terminal to read from: there it stays ignored. Windows also has
    Ctrl-Break, which would end the process without a message.
    """
    import signal

    if sys.platform == "win32":
        signal.signal(signal.SIGBREAK, lambda *_: signal.raise_signal(signal.SIGINT))
        return
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        return
    try:
        if os.tcgetpgrp(0) == os.getpgrp():
            signal.signal(signal.SIGINT, signal.default_int_handler)
    except OSError:
        return  # stdin is not a terminal


def run(args: list[str]) -> int:
    """Run the program and return its exit code."""
    first = args[0] if args else "--help"
    if first == "help" and len(args) > 1 and not args[1].startswith("-"):
        first, args = args[1], [*args[1:], "--help-all"]
    if first in ("-h", "--help", "help", "--help-all"):
        return _print(help_text(_program(), everything="--help-all" in args))
    if first in ("-V", "--version"):
        from winml.modelkit.cli.version import version_text

        return _print(version_text(_program()))
    if first == "--complete":  # of the script of a shell, see `winml completion`
        from winml.modelkit.cli.completion.answers import print_answer

        return print_answer(args[1:])
    if first not in COMMANDS:
        return _unknown(first, as_json="--json" in args)
    return _command(first, args[1:])


def main() -> None:
    """Entry point of `winml` and `wmk`."""
    _open_closed_streams()
    _choose_encoding()
    _listen_to_ctrl_c()
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # before the command started, which handles Ctrl-C itself
        from winml.modelkit.core.errors import Interrupted

        sys.exit(_fail(sys.argv[1], Interrupted("interrupted"), as_json="--json" in sys.argv))


if __name__ == "__main__":
    main()
