"""Pages of the repository as the site needs them.

They are written for GitHub: links may lead out of `docs/`, files are named as code, lists are indented by two or three
spaces. Nothing here knows mkdocs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from md_text import slug

_FENCE = re.compile(r"^\s*(```+|~~~+)")
_ITEM = re.compile(r"^( *)([-*+]|\d+[.)])( +)(?=\S)")
_INLINE = re.compile(r"(?P<link>!?\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\))|(?P<code>`[^`\n]+`)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_COMMENT = re.compile(r"^<!--.*-->$")
_ELSEWHERE = re.compile(r"^([a-z][a-z+.-]*:|//|#)", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """Where a page comes from and where it goes."""

    source: str
    """Its path in the repository: `docs/matrix.md`, `CHANGELOG.md`."""
    page: str
    """Its path on the site, below `docs/`: `matrix.md`, `changelog.md`."""


@dataclass(frozen=True)
class Site:
    """What links may lead to."""

    pages: Collection[str]
    """Paths on the site."""
    moved: dict[str, str] = field(default_factory=dict)
    """Files of the repository that are pages under another name."""
    source_url: str | None = None
    """Where files of the repository can be read, such as `https://host/org/name/blob/main`; None when nowhere."""


def title_of(text: str) -> str | None:
    """The first heading of a page, without marks."""
    found = _TITLE.search(text)
    return None if found is None else found[1].replace("`", "").strip()


def prepare(text: str, place: Place, site: Site) -> str:
    """A page whose links hold on the site, and whose lists Python-Markdown understands."""
    linked = change_outside_code(text, lambda line: _rewrite_line(line, place, site))
    return indent_lists(separate_comments(linked))


def separate_comments(text: str) -> str:
    """Comments with empty lines around them: Python-Markdown takes what follows at once for a part of them."""
    return change_outside_code(text, lambda line: f"\n{line}\n" if _COMMENT.match(line) else line)


def lines_with_code(text: str) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it belongs to a block of code."""
    fence: str | None = None
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and fence is None:
            fence = mark[1]
            yield line, True
        elif fence is not None:
            if mark is not None and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
            yield line, True
        else:
            yield line, False


def change_outside_code(text: str, change: Callable[[str], str]) -> str:
    """A text with every line changed that is no code."""
    return "\n".join(line if is_code else change(line) for line, is_code in lines_with_code(text)) + "\n"


def _rewrite_line(line: str, place: Place, site: Site) -> str:
    def rewrite(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return _link_code(found["code"], place, site)
        return _rewrite_link(found, place, site)

    return _INLINE.sub(rewrite, line)


def _rewrite_link(found: re.Match[str], place: Place, site: Site) -> str:
    target = found["target"]
    if _ELSEWHERE.match(target):
        return found[0]
    path, hash_mark, anchor = target.partition("#")
    there = _resolve(path, place.source)
    page = _page_of(there, site)
    bang = "!" if found[0].startswith("!") else ""
    if page is not None:
        return f"{bang}[{found['text']}]({_relative(page, place.page)}{hash_mark}{anchor})"
    if there.startswith("docs/") and not there.endswith(".md"):
        return found[0] if place.source.startswith("docs/") else found[0].replace(path, path.removeprefix("docs/"))
    if there.startswith("docs/"):
        return found[0]  # a page that is missing: the strict build says so
    if site.source_url is not None:
        return f"{bang}[{found['text']}]({site.source_url.rstrip('/')}/{there}{hash_mark}{anchor})"
    return str(found["text"])


def _link_code(code: str, place: Place, site: Site) -> str:
    """A page that is named as code becomes a link to it: `docs/matrix.md`, `decisions/0022-values.md`."""
    name = code.strip("`")
    if not name.endswith(".md"):
        return code
    for there in (name, _resolve(name, place.source)):
        page = _page_of(there, site)
        if page is not None and page != place.page:
            return f"[{code}]({_relative(page, place.page)})"
    return code


def _resolve(path: str, source: str) -> str:
    """A path in the repository, named from one of its files."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _page_of(there: str, site: Site) -> str | None:
    if there in site.moved:
        return site.moved[there]
    page = there.removeprefix("docs/")
    return page if there.startswith("docs/") and page in site.pages else None


def _relative(page: str, start: str) -> str:
    return posixpath.relpath(page, posixpath.dirname(start) or ".")


def indent_lists(text: str) -> str:
    """Lists whose items are indented by four spaces, with an empty line before them: Python-Markdown wants both."""
    lines: list[str] = []
    levels: list[tuple[int, int]] = []  # where the marker and the text of an item begin
    for line, is_code in lines_with_code(text):
        indent = len(line) - len(line.lstrip(" "))
        item = None if is_code else _ITEM.match(line)
        if not line.strip():
            lines.append(line)
            continue
        if item is not None:
            while levels and indent < levels[-1][1]:
                levels.pop()
            if not levels and lines and lines[-1].strip() and not _continues_list(lines):
                lines.append("")
            lines.append(" " * (4 * len(levels)) + line.lstrip(" "))
            levels.append((indent, len(item[0])))
            continue
        while levels and indent < levels[-1][1] and not (lines[-1].strip() and not is_code):
            levels.pop()
        depth = len(levels)
        lines.append(line if not depth else " " * (4 * depth) + line[min(indent, levels[-1][1]) :])
    return "\n".join(lines) + "\n"


def _continues_list(lines: list[str]) -> bool:
    """Whether the paragraph at the end of some lines is an item of a list."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if _ITEM.match(line):
            return True
    return False


def links(text: str) -> Iterator[str]:
    """Targets of the links of a page, but for those to other hosts."""
    for line, is_code in lines_with_code(text):
        if not is_code:
            for found in _INLINE.finditer(line):
                if found["link"] is not None and not re.match(r"[a-z][a-z+.-]*:", found["target"], re.IGNORECASE):
                    yield found["target"]


def anchors(text: str) -> list[str]:
    """What links to a page may name behind `#`: headings, those that say their own, and `<a id=...>`."""
    found: list[str] = []
    for line, is_code in lines_with_code(text):
        if is_code:
            continue
        found += re.findall(r'<a id="([^"]+)">', line)
        heading = re.match(r"^#{1,6} (.*?)(?: \{ #(\S+) \})?$", line)
        if heading is not None:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            found.append(heading[2] or _number(slug(plain.replace("`", "").replace("\\", "")), found))
    return found


def _number(name: str, taken: Collection[str]) -> str:
    """A heading of the same text a second time is `name-1` on GitHub and `name_1` here: links to it do not hold."""
    return name if name not in taken else f"{name} again"
