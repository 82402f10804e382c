"""Run the tests under a Windows Python (`make test-windows`); everything it needs is set up first.

    python3.11 scripts/windows/run_tests.py                        all tests that Windows can run
    python3.11 scripts/windows/run_tests.py tests/store -k lock    these, as pytest takes them
    python3.11 scripts/windows/run_tests.py --short                the list in short.txt, for every change
    python3.11 scripts/windows/run_tests.py --program -m winml.modelkit perf --sample

The exit code is that of pytest; 77 means that nothing was run, and the last line says why.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tomllib
from pathlib import Path

from environment import HERE, INTERPRETERS, REPOSITORY, CannotRun, Environment, end_all, ready, run, say, windows_path

FAILED = 1
"""How pytest ends when tests failed."""
NOT_RUN = 77
INTERRUPTED = 130
LIST = HERE / "short.txt"
PATIENCE = ("-o", "timeout=1800")
"""A test that takes longer ends the whole run on Windows, which has no signal for it; a start takes seconds there."""


def short_selection() -> list[str]:
    """The tests of `short.txt`, one per line; what follows a `#` is a comment."""
    lines = (line.partition("#")[0].strip() for line in LIST.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False, add_help=False)
    parser.add_argument("--python", default="3.11", choices=INTERPRETERS)
    default = os.environ.get("WINML_WINDOWS_HOME", REPOSITORY / "build" / "windows")
    parser.add_argument("--home", type=Path, default=default)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--again", action="store_true", help="run tests that failed once more, in a new Windows")
    parser.add_argument("--launcher", action="store_true", help="start by the python.exe of a virtual environment")
    parser.add_argument("--set-up-only", action="store_true")
    parser.add_argument("--program", action="store_true", help="the words are for python.exe instead of pytest")
    parser.add_argument("--windows-help", action="help", help="this text; --help is that of pytest")
    return parser.parse_known_args()


def remembering(made: Environment) -> list[str]:
    """Words for pytest that make it keep which tests failed: our configuration switches that off."""
    with (REPOSITORY / "pyproject.toml").open("rb") as stream:
        usual: str = tomllib.load(stream)["tool"]["pytest"]["ini_options"]["addopts"]
    place = windows_path(made.home / f"failed-{made.version}")
    return ["-o", f"addopts={usual.replace('-p no:cacheprovider', '')}", "-o", f"cache_dir={place}"]


def _run_tests(made: Environment, argv: list[str], *, again: bool) -> int:
    """The exit code of pytest; with `again`, that of the tests that failed when they run once more.

    Wine fails at times where Windows does not, once with an internal error at the start of a process. Both runs are
    shown; a test that fails twice has failed.
    """
    code = run(made, argv)
    if code != FAILED or not again:
        return code
    say("tests failed; they run once more, in a Windows that is started anew")
    end_all(made)
    if run(made, [*argv, "--last-failed", "--last-failed-no-failures", "none"]) != 0:
        return code
    say("the tests that failed passed the second time; the first run above says how they failed")
    return 0


def main() -> int:
    options, words = _arguments()
    made = Environment(options.home.absolute(), options.python)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    try:
        with ready(made):
            if options.set_up_only:
                return 0
            if not options.program:
                kept = remembering(made) if options.again else []
                words = ["-u", "-m", "pytest", *PATIENCE, *kept, *(short_selection() if options.short else ()), *words]
            argv = [made.launcher if options.launcher else made.python, *words]
            return _run_tests(made, argv, again=options.again and not options.program)
    except CannotRun as error:
        say(f"not run: {error}")
        return NOT_RUN
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
