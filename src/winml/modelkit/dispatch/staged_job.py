"""The program of a job on a node: `python -m winml.modelkit.dispatch.staged_job SPEC`.

It fetches the inputs of a `winml` command, runs it and stages its output folder. What it starts stays in its
process group, so that ending the job ends all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import ModelkitError, UnavailableError, of_system
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.location import JOB_VARIABLE, cache_root
from winml.modelkit.dispatch.run import was_killed
from winml.modelkit.dispatch.staging import Staging, Word
from winml.modelkit.feed.content import scan
from winml.modelkit.feed.table import open_feed
from winml.modelkit.store import atomic, digest

UNUSED_S = 7 * 24 * 3600.0
"""How long a node keeps an input that no job uses."""


def fetch_word(staging: Staging, word: Word) -> str:
    """An argument of the command on this machine; an input is fetched first, unless an earlier job already did."""
    if isinstance(word, str):
        return word
    from filelock import FileLock

    folder = cache_root() / "inputs"
    atomic.make_folder(folder)
    own = folder / digest.check(word["input"]).removeprefix(digest.PREFIX)
    with FileLock(f"{own}.lock"):
        staging.get(word["input"], own)
        os.utime(own)
    forget_unused(folder, time.time())
    return str(own / word["path"])


def forget_unused(folder: Path, now: float) -> None:
    """Remove inputs that no job has used for a long time."""
    for own in folder.iterdir():
        if own.is_dir() and now - own.stat().st_mtime > UNUSED_S:
            shutil.rmtree(own, ignore_errors=True)
            own.with_name(f"{own.name}.lock").unlink(missing_ok=True)


def _winml(words: list[str]) -> tuple[int, str]:
    env = {**os.environ, JOB_VARIABLE: str(os.getpid())}
    argv = [sys.executable, "-m", "winml.modelkit", *words]
    done = subprocess.run(argv, stdout=subprocess.PIPE, env=env, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def carry_out(spec: dict[str, Any], out: Path) -> tuple[int, dict[str, Any]]:
    """The exit code of the command, its stdout, and the digest of its output folder."""
    with closing(open_feed(spec["feed"])) as feed:
        staging = Staging(feed, spec["stamp"])
        words = [fetch_word(staging, word) for word in spec["words"]]
        code, output = _winml([*words, "-o", str(out), "--json"])
        made = staging.put(scan(out)) if out.is_dir() and any(out.iterdir()) else None
    return code, {"digest": made, "output": output}


def _refusal(error: ModelkitError) -> tuple[int, dict[str, Any]]:
    """The answer of a job whose files could not be staged; a problem of this machine affects every job."""
    output = json.dumps({"ok": False, "error": error.to_json()})
    trouble = error.to_json() if isinstance(error, UnavailableError) else None
    return error.exit_code, {"digest": None, "output": output, "trouble": trouble}


def main(spec: str) -> int:
    try:
        code, answer = carry_out(parse_json(spec), Path("out").absolute())
    except OSError as error:
        refused = of_system(error)
        if refused is None:
            raise
        code, answer = _refusal(refused)
    except ModelkitError as error:
        code, answer = _refusal(error)
    if code < 0 or was_killed(code, str(answer["output"])):
        # End in the same way as the command, so that the waiting process sees that it crashed or was killed.
        if sys.platform != "win32":
            os.kill(os.getpid(), -code)
        os._exit(code & 0xFF)
    sys.stdout.write(json.dumps(answer))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
