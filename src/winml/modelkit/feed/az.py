"""Calls of `az`, and what its failures mean.

The error line of a failed publish repeats all arguments, so a word like "exists" or "409" in it means nothing: it may
be part of a path or a model's name. What counts is the return code at the end of that line, and other lines.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.worker.command import run_command
from winml.modelkit.worker.scratch import ScratchFolder

Problem = Literal["login", "exists", "no-feed", "tool", "usage", "timeout", "other"]

_LIMIT = 400
_TOOL = re.compile(r"^ERROR: Process \[.*\] with PID \d+ exited with return code (\d+)\s*$")
_NO_LOGIN = re.compile(
    r"^ERROR: Please run 'az login' to setup account\."
    r"|^\s*Before you can run Azure DevOps commands, you need to run the login command"
    # A name that contains this word continues with a letter, a dot or a slash.
    r"|(?<![\w./\\-])invalid_grant(?![\w/\\-]|\.\w)"
)
_TOOL_PROBLEMS: dict[int, Problem] = {17: "exists", 19: "no-feed"}


@dataclass(frozen=True)
class Failure:
    """Why a call of `az` failed."""

    problem: Problem
    message: str


@dataclass(frozen=True)
class Done:
    """What `az` wrote to its output."""

    output: str


def classify(returncode: int | None, errors: str) -> Failure:
    """What an exit code other than 0 and the lines on stderr mean; None means that the call timed out."""
    if returncode is None:
        return Failure("timeout", "`az` did not respond in time and was stopped")
    lines = errors.splitlines()
    codes = [int(found[1]) for line in lines if (found := _TOOL.match(line))]
    plain = [line.strip() for line in lines if line.strip() and not line.startswith("ERROR: Process [")]
    said = plain[-1].removeprefix("ERROR: ")[:_LIMIT] if plain else f"`az` ended with exit code {returncode}"
    if any(_NO_LOGIN.search(line) for line in plain):
        return Failure("login", said)
    if codes:
        message = said if plain else f"ArtifactTool ended with return code {codes[-1]}"
        return Failure(_TOOL_PROBLEMS.get(codes[-1], "tool"), message)
    return Failure("usage" if returncode == 2 else "other", said)


def unavailable(failure: Failure, what: str) -> UnavailableError:
    """A failure as the error that the feed could not be queried."""
    hints: dict[Problem, str] = {
        "login": "run `az login`, then run it again",
        "no-feed": "check organization, project and feed",
        "usage": "update with `az upgrade` and `az extension update --name azure-devops`",
        "timeout": "check the network, then run it again",
    }
    return UnavailableError(f"{what}: {failure.message}", hint=hints.get(failure.problem))


def _own_python(program: Path) -> Path | None:
    """The interpreter that a batch file of the Azure CLI starts: the installer's, or that of an environment."""
    for python in (program.parent / "python.exe", program.parent.parent / "python.exe"):
        for root in (python.parent, python.parent.parent):
            if python.is_file() and (root / "Lib" / "site-packages" / "azure" / "cli").is_dir():
                return python
    return None


def _batch_line(program: str, args: Sequence[str]) -> str:
    """A line for cmd in which every argument is literal.

    In quotes cmd leaves `&`, `|`, `<`, `>`, `^` and brackets alone, and the batch file passes the quotes on. `%` and
    `"` cannot be escaped for both.
    """
    for arg in (program, *args):
        if any(c in '%"' or c < " " for c in arg):
            raise RequestError(
                f"`az` is a batch file here and cannot take `{arg}`: cmd interprets `%` and quotes",
                hint="rename the file or folder, or install the Azure CLI with its installer",
            )
    # A backslash before a quote would escape the quote: double it.
    words = " ".join('"' + re.sub(r"(\\+)$", r"\1\1", arg) + '"' for arg in (program, *args))
    return f'"{os.environ.get("COMSPEC", "cmd.exe")}" /d /s /c "{words}"'


def command(program: str, args: Sequence[str]) -> list[str] | str:
    """What starts `az` with these arguments; on Windows it is a batch file, whose arguments cmd would read again."""
    if not program.lower().endswith((".cmd", ".bat")):
        return [program, *args]
    python = _own_python(Path(program))
    return _batch_line(program, args) if python is None else [str(python), "-IBm", "azure.cli", *args]


@dataclass(frozen=True)
class Az:
    """The program `az`, found once."""

    program: str

    @classmethod
    def here(cls) -> Az:
        found = shutil.which("az")
        if found is None:
            raise UnavailableError(
                "Azure feeds need the program `az`, which is not on PATH",
                hint="install the Azure CLI, then `az extension add --name azure-devops` and `az login`",
            )
        return cls(found)

    def call(self, *args: str, timeout_s: float) -> Done | Failure:
        """Run `az`; Ctrl-C and a timeout end it with everything it started, because it leaves its children running."""
        env = {**os.environ, "AZURE_CORE_NO_COLOR": "1", "NO_COLOR": "1", "AZURE_CORE_ONLY_SHOW_ERRORS": "1"}
        with ScratchFolder("winml-az-") as folder:
            argv = command(self.program, (*args, "--output", "json"))
            out = folder / "out"
            done = run_command(argv, cwd=folder, log=folder / "err", out=out, timeout_s=timeout_s, env=env)
            if done.ok:
                return Done(out.read_text("utf-8", "replace"))
            return classify(done.returncode, done.output)

    def ask(self, what: str, *args: str, timeout_s: float) -> Any:
        """The JSON answer of `az`; a failure raises, because the feed was not queried then."""
        done = self.call(*args, timeout_s=timeout_s)
        if isinstance(done, Failure):
            raise unavailable(done, what)
        try:
            return parse_json(done.output, lenient=True)
        except ValueError as error:
            raise UnavailableError(f"{what}: `az` did not answer with JSON") from error
