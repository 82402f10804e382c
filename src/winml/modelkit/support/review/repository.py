"""The files that a change modifies: git reads a copy of the repository, and a failure to do so is reported."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.store import digest
from winml.modelkit.support.review.git_copy import GitFolder, NotAsked, copy_repository, decode_name, find_repository
from winml.modelkit.worker.programs import find_program

__all__ = ["BASES", "Change", "NotAsked", "find_change"]

BASES = ("origin/main", "main")
"""The default bases of a change."""
_OURS = "src/winml/modelkit"
_TIMEOUT_S = 60.0
_CHUNK = 1 << 20
_KEPT = ("SYSTEMROOT", "WINDIR", "TEMP", "TMP", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that a program needs to start; git gets no others."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_SETTINGS = (
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    f"core.hooksPath={os.devnull}",
    f"core.attributesFile={os.devnull}",
    "core.fsmonitor=false",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.bigFileThreshold=1m",
    "gc.auto=0",
    "maintenance.auto=false",
)
"""The copy contains none of these; the settings are a second safeguard."""


@dataclass(frozen=True)
class Change:
    """The files of a repository that differ between the merge base of a change and its head."""

    repository: Path
    base: str
    head: str
    files: dict[str, str | None]
    """Digests at the head by path; None for a file that is gone."""


def find_change(folder: Path, repo: str | None, base: str | None) -> Change:
    """The change that a contribution belongs to; a given repository or base must be usable."""
    try:
        found = find_repository(Path(repo) if repo is not None else folder)
        with tempfile.TemporaryDirectory(prefix="winml-git-", ignore_cleanup_errors=True) as name:
            git = _Git(found, Path(name))
            head = git.commit("HEAD")
            if git.name(f"{head}:{_OURS}") is None:
                raise NotAsked(f"`{found.top}` is not a repository of this project")
            base_name, commit = _base(git, found.top, base)
            return Change(found.top, base_name, head, git.find_changed(commit, head))
    except NotAsked as error:
        if repo is None and base is None:
            raise
        raise RequestError(f"the change cannot be determined: {error}", hint="check `--repo` and `--base`") from error


def _base(git: _Git, root: Path, asked: str | None) -> tuple[str, str]:
    names = (asked,) if asked is not None else BASES
    for name in names:
        commit = git.name(f"{name}^{{commit}}")
        if commit is not None:
            return name, commit
    raise NotAsked(f"`{root}` has no {' or '.join(f'`{name}`' for name in names)}")


class _Git:
    """Git on a copy of a repository that contains only its objects and names."""

    def __init__(self, found: GitFolder, folder: Path) -> None:
        self._folder = folder / "copy"
        self._folder.mkdir()
        program = find_program("git", outside=found.top)
        if program is None:
            raise NotAsked("git is not installed")
        self._argv = [str(program), "--no-pager", "--git-dir", str(self._folder)]
        self._argv += [word for setting in _SETTINGS for word in ("-c", setting)]
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        # Git finds its own programs by its location; it needs no search path, and gets none that leads into the folder.
        own = {"HOME": str(folder), "USERPROFILE": str(folder), "PATH": str(program.parent)}
        self._env = {**kept, **_ENVIRONMENT, **own}
        copy_repository(found, self._folder)

    def commit(self, name: str) -> str:
        found = self.name(f"{name}^{{commit}}")
        if found is None:
            raise NotAsked(f"the commit at `{name}` is not in the repository: its clone is partial, or damaged")
        return found

    def name(self, expression: str) -> str | None:
        """The object of an expression; None when there is none."""
        code, out, _ = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
        return out.decode("ascii", "replace").strip() if code == 0 else None

    def find_changed(self, base: str, head: str) -> dict[str, str | None]:
        """Digests at the head of the files that differ from the merge base."""
        origin = self._say("merge-base", base, head).decode("ascii").split()[0]
        # Without renames, so that a removed file is listed too.
        listed = self._say("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff",
                           "--no-textconv", "--ignore-submodules=none", origin, head)  # fmt: skip
        words = decode_name(listed).split("\0")
        blobs = {path: _blob(entry) for entry, path in zip(words[::2], words[1::2], strict=False)}
        digests = self._digests(sorted({blob for blob in blobs.values() if blob is not None}))
        return {path: None if blob is None else digests[blob] for path, blob in blobs.items()}

    def _digests(self, blobs: Sequence[str]) -> dict[str, str]:
        """Digests of contents, read in chunks: a small object may expand to a large file."""
        with tempfile.TemporaryFile() as asked:
            asked.write("".join(f"{blob}\n" for blob in blobs).encode("ascii"))
            asked.seek(0)
            process = subprocess.Popen(
                [*self._argv, "cat-file", "--batch"], stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=self._folder, env=self._env,
            )  # fmt: skip
        watch = threading.Timer(_TIMEOUT_S, process.kill)
        watch.start()
        try:
            return {blob: _read_digest(process, blob) for blob in blobs}
        finally:
            watch.cancel()
            process.kill()
            process.communicate()

    def _say(self, *words: str) -> bytes:
        code, out, err = self._run(*words)
        if code != 0:
            lines = err.decode(errors="replace").strip().splitlines()
            raise NotAsked(lines[-1].removeprefix("fatal: ") if lines else f"`git {words[0]}` exited with {code}")
        return out

    def _run(self, *words: str) -> tuple[int, bytes, bytes]:
        try:
            done = subprocess.run(
                [*self._argv, *words], cwd=self._folder, env=self._env, stdin=subprocess.DEVNULL, capture_output=True,
                check=False, timeout=_TIMEOUT_S,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotAsked(f"git did not answer: {error}") from error
        return done.returncode, done.stdout, done.stderr


def _blob(entry: str) -> str | None:
    """The object of a file at the head (`:OLD-MODE MODE OLD OBJECT STATUS`); None when it is gone or not a file."""
    _, mode, _, found, _ = entry.split(" ")
    return found if mode.startswith("100") else None


def _read_digest(process: subprocess.Popen[bytes], blob: str) -> str:
    assert process.stdout is not None
    said = process.stdout.readline().decode("ascii", "replace").split()
    if len(said) != 3 or said[1] != "blob":
        raise NotAsked(f"the object {blob} is not in the repository: its clone is partial, or damaged")
    hasher, left = hashlib.sha256(), int(said[2])
    while left > 0:
        chunk = process.stdout.read(min(left, _CHUNK))
        if not chunk:
            raise NotAsked(f"the object {blob} cannot be read")
        hasher.update(chunk)
        left -= len(chunk)
    process.stdout.read(1)
    return digest.PREFIX + hasher.hexdigest()
