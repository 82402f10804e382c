"""What a change really changes: git is asked, and where it cannot be, that is said."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import RequestError
from winml.modelkit.store import digest

BASES = ("origin/main", "main")
"""What a change is held against when nobody names anything else."""
_OURS = "src/winml/modelkit"
_TIMEOUT_S = 60.0


class NotAsked(ValueError):
    """Git could not be asked, with the reason."""


@dataclass(frozen=True)
class Change:
    """The files of a repository that differ between the place where a change branched off and its head."""

    repository: Path
    base: str
    head: str
    files: dict[str, str | None]
    """Digests at the head by path; None for a file that is gone."""

    def to_json(self) -> dict[str, Any]:
        return {
            "asked": True,
            "reason": None,
            "repository": str(self.repository),
            "base": self.base,
            "head": self.head,
            "files": sorted(self.files),
        }


def not_asked(reason: str) -> dict[str, Any]:
    """The answer where git could not be asked, which is not the same as that nothing changed."""
    return {"asked": False, "reason": reason, "repository": None, "base": None, "head": None, "files": None}


def change(folder: Path, repo: str | None, base: str | None) -> Change:
    """The change that a contribution belongs to; a repository or base that was named has to answer."""
    try:
        return _change(Path(repo) if repo is not None else folder, base)
    except NotAsked as error:
        if repo is None and base is None:
            raise
        raise RequestError(f"the change cannot be told: {error}", hint="check `--repo` and `--base`") from error


def _change(place: Path, base: str | None) -> Change:
    root = Path(_git(place, "rev-parse", "--show-toplevel").decode().removesuffix("\n"))
    if not _git(root, "ls-tree", "--name-only", "HEAD", _OURS):
        raise NotAsked(f"`{root}` is not a repository of this project")
    found = _base(root, base)
    head = _commit(root, "HEAD")
    # Without renames, so that a file that went away is named too.
    listed = _git(
        root, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", f"{_commit(root, found)}...{head}"
    )
    paths = [name for name in os.fsdecode(listed).split("\0") if name]
    return Change(root, found, head, {path: _digest(root, head, path) for path in paths})


def _base(root: Path, asked: str | None) -> str:
    for name in (asked,) if asked is not None else BASES:
        try:
            _commit(root, name)
        except NotAsked:
            continue
        return name
    raise NotAsked(f"`{root}` has no {' or '.join(f'`{name}`' for name in ((asked,) if asked is not None else BASES))}")


def _commit(root: Path, name: str) -> str:
    return _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").decode().strip()


def _digest(root: Path, head: str, path: str) -> str | None:
    """The digest of a file at the head; None when it is gone, or is no file."""
    if not _git(root, "ls-tree", "-z", "--full-tree", head, "--", f":(literal){path}").startswith(b"100"):
        return None
    return digest.of_bytes(_git(root, "cat-file", "blob", f"{head}:{path}"))


def _git(place: Path, *words: str) -> bytes:
    """What git says; its own variables and programs that a repository may name are left out."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false")
    try:
        done = subprocess.run(
            ["git", *quiet, *words], cwd=place, env=env, capture_output=True, check=False, timeout=_TIMEOUT_S
        )
    except FileNotFoundError as error:
        reason = "git is not installed" if place.is_dir() else f"there is no folder `{place}`"
        raise NotAsked(reason) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAsked(f"git gives no answer: {error}") from error
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        raise NotAsked(told[-1].removeprefix("fatal: ") if told else f"git {words[0]} ends with exit {done.returncode}")
    return done.stdout
