"""Skills for agents: a folder with a SKILL.md in the open format and pages beside it, read strictly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.suggest import nearest

PAGE = "SKILL.md"
MAX_LINES = 500
MAX_CHARACTERS = 20_000
"""About 5000 tokens, by four characters each."""

_LIMITS = {"name": 64, "description": 1024, "compatibility": 500}
_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ENTRY = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_NEEDS_QUOTES = re.compile(r"[\[\]{}>|*&!%@`#,?-]|.*(: |:$| #)")


@dataclass(frozen=True)
class Problem:
    """A problem in a file."""

    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Skill:
    """A skill's folder with what its front matter says and the problems found in it."""

    folder: Path
    fields: dict[str, str]
    problems: tuple[Problem, ...]

    @property
    def pages(self) -> list[Path]:
        """Every page of the skill, SKILL.md first."""
        page = self.folder / PAGE
        return [page, *sorted(p for p in self.folder.rglob("*.md") if p != page)]


def folders(path: Path) -> list[Path]:
    """The skills in a folder: itself, or those right inside it."""
    if (path / PAGE).is_file():
        return [path]
    return sorted(p.parent for p in path.glob(f"*/{PAGE}"))


def read(folder: Path) -> Skill:
    """The skill in a folder, checked against the format."""
    page = folder / PAGE
    try:
        lines = page.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return Skill(folder, {}, (Problem(page, 1, "it must be text in UTF-8"),))
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if not lines or lines[0].rstrip() != "---" or end is None:
        return Skill(folder, {}, (Problem(page, 1, "it must begin with front matter between two lines `---`"),))
    matter = _FrontMatter(page, lines[1:end])
    problems = [*matter.problems, *_field_problems(folder, matter), *_body_problems(page, lines[end + 1 :], end + 2)]
    fields = {name: text for name, (_, text) in matter.values.items()}
    return Skill(folder, fields, (*problems, *_link_problems(folder)))


class _FrontMatter:
    """The part of YAML that front matter needs: text on one line, text in a block, and one level of names."""

    def __init__(self, page: Path, lines: list[str]) -> None:
        self._page = page
        self.values: dict[str, tuple[int, str]] = {}
        self.problems: list[Problem] = []
        name = ""
        for number, line in enumerate(lines, 2):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if line[0].isspace():
                self._more(name, number, line.strip())
                continue
            found = _ENTRY.fullmatch(line.rstrip())
            if found is None:
                self._problem(number, f"not `name: text`: {line.rstrip()!r}")
                continue
            name = found[1]
            if name in self.values:
                self._problem(number, f"`{name}` is given twice")
            self.values[name] = (number, self._scalar(number, found[2] or ""))

    def _more(self, name: str, number: int, text: str) -> None:
        """A line that belongs to the name above it."""
        if name == "metadata":
            found = _ENTRY.fullmatch(text)
            if found is None:
                self._problem(number, f"`metadata` must map names to text but has {text!r}")
            else:
                self._scalar(number, found[2] or "")
        elif name in self.values:
            line, before = self.values[name]
            self.values[name] = (line, f"{before} {text}".strip())
        else:
            self._problem(number, "an indented line without a field above it")

    def _scalar(self, number: int, text: str) -> str:
        text = text.strip()
        if text in (">", "|", ">-", "|-"):
            return ""
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
            return text[1:-1]
        if text and _NEEDS_QUOTES.match(text):
            self._problem(number, f"this is not plain text in YAML; put it in quotes: {text!r}")
        return text

    def _problem(self, line: int, message: str) -> None:
        self.problems.append(Problem(self._page, line, message))


def _field_problems(folder: Path, matter: _FrontMatter) -> Iterator[Problem]:
    page = folder / PAGE
    for name in ("name", "description"):
        if not matter.values.get(name, (0, ""))[1]:
            yield Problem(page, 1, f"`{name}` is missing")
    for name, (line, text) in matter.values.items():
        if name not in _FIELDS:
            near = nearest(name, _FIELDS)
            yield Problem(page, line, f"unknown field `{name}`" + (f"; did you mean `{near}`?" if near else ""))
        limit = _LIMITS.get(name)
        if limit is not None and len(text) > limit:
            yield Problem(page, line, f"`{name}` has {len(text)} characters, at most {limit} are allowed")
    line, name = matter.values.get("name", (1, ""))
    if name and not _NAME.fullmatch(name):
        yield Problem(page, line, f"`name` must be lower-case words joined by single hyphens but is `{name}`")
    if name and name != folder.resolve().name:
        yield Problem(page, line, f"`name` is `{name}` but the folder is `{folder.resolve().name}`")


def _body_problems(page: Path, body: list[str], first: int) -> Iterator[Problem]:
    if not any(line.strip() for line in body):
        yield Problem(page, first, "there is nothing below the front matter")
    if len(body) >= MAX_LINES:
        yield Problem(page, first, f"{len(body)} lines, fewer than {MAX_LINES} are allowed; move some to references/")
    size = sum(len(line) + 1 for line in body)
    if size > MAX_CHARACTERS:
        yield Problem(page, first, f"{size} characters, at most {MAX_CHARACTERS} fit; move some to references/")


def _link_problems(folder: Path) -> Iterator[Problem]:
    """Links to files that do not exist or are outside the skill, which is installed on its own."""
    for page in Skill(folder, {}, ()).pages:
        for number, line in enumerate(page.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            for target in _LINK.findall(line):
                if "://" in target or target.startswith("#"):
                    continue
                file = (page.parent / target.partition("#")[0]).resolve()
                if not file.is_relative_to(folder.resolve()):
                    yield Problem(page, number, f"`{target}` is outside the skill")
                elif not file.exists():
                    yield Problem(page, number, f"`{target}` does not exist")
