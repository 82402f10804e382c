"""A report as one HTML file: no request to anywhere, readable without its script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from winml.modelkit.core.plain_text import html as safe
from winml.modelkit.core.plain_text import lines
from winml.modelkit.render.figures.canvas import HALF, NARROW, WIDE
from winml.modelkit.render.figures.style import STATE_GLYPHS as GLYPHS
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.assets import PAGE_SCRIPT, PAGE_STYLE, policy
from winml.modelkit.render.pages.page import (
    Block,
    Cell,
    Columns,
    Facts,
    Figure,
    Group,
    Notices,
    Page,
    Table,
    Text,
    slug,
)

GENERATOR = '<meta name="generator" content="winml report">'
"""What tells a report of ours from any other file."""
_LONG = 28
"""Characters of a cell that is broken into lines."""


def prose(text: str) -> str:
    """A sentence; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", safe(text))


def document(
    title: str, body: str, *, script: str = PAGE_SCRIPT, style: str = PAGE_STYLE, meta_policy: bool = True
) -> str:
    """A whole page around its content; a server that sends the policy itself does without it here."""
    said = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script=script, style=style)}">'
        if meta_policy
        else ""
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{GENERATOR}{said}'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{safe(title)}</title><style>{style}</style></head>\n<body>{body}<script>{script}</script>"
        "</body></html>\n"
    )


def page_html(page: Page, footer: str = "") -> str:
    """The report as a file."""
    return document(page.title, page_body(page, footer))


def page_body(page: Page, footer: str = "", navigation: str = "") -> str:
    """What stands between `<body>` and the script."""
    style = STATES.get(page.state or "", "quiet")
    glyph = f'<span class="state {style}" aria-hidden="true">{GLYPHS[style]}</span> ' if page.state else ""
    following = "" if page.command is None else f'<p class="next">Next: <code>{safe(page.command)}</code></p>'
    return (
        f'<a class="skip" href="#main">Skip to the report</a>{navigation}'
        f'<header><p class="kind">{safe(page.kind)}</p><h1>{safe(page.title)}</h1>'
        f'<p class="answer {style}">{glyph}{prose(page.answer)}</p></header>\n'
        f'<main id="main">{_blocks(page.blocks)}{following}</main>\n<footer>{safe(footer)}</footer>'
    )


class _Ids:
    """Ids of headings, each once."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        self._taken[name] = self._taken.get(name, 0) + 1
        return name if self._taken[name] == 1 else f"{name}-{self._taken[name]}"


def _blocks(blocks: Sequence[Block]) -> str:
    ids = _Ids()
    return "\n".join(_block(block, 2, WIDE, ids) for block in blocks)


def _block(block: Block, level: int, width: float, ids: _Ids) -> str:
    match block:
        case Figure():
            return _figure(block, level, width, ids)
        case Table():
            return _heading(block.title, level, ids) + _fold(_sentence(block.note) + _table(block), block.folded)
        case Facts():
            pairs = "".join(f"<dt>{safe(name)}</dt><dd>{prose(value)}</dd>" for name, value in block.pairs)
            return _heading(block.title, level, ids) + _fold(f"<dl>{pairs}</dl>", block.folded)
        case Notices():
            said = "".join(f"<li>{prose(line)}</li>" for line in block.lines)
            return (
                f'<ul class="notices {safe(block.kind)}" aria-label="{safe(block.kind)}s">{said}</ul>' if said else ""
            )
        case Text():
            head = "" if block.title is None else _heading(block.title, level, ids)
            # Line ends stay: everything else that is not seen is written out.
            write = safe if block.code else prose
            text = "\n".join(write(line) for line in lines(block.text).split("\n"))
            return head + (f"<pre>{text}</pre>" if block.code else f"<p>{text}</p>")
        case Group():
            heading = _heading(block.title, level, ids, block.state, block.anchor)
            inner = "\n".join(_block(one, level + bool(block.title), width, ids) for one in block.blocks)
            return f"<section>{heading}{_fold(inner, block.folded)}</section>"
        case Columns():
            inner = "".join(f"<div>{_block(one, level, HALF, ids)}</div>" for one in block.blocks)
            return f'<div class="columns">{inner}</div>'


def _heading(title: str, level: int, ids: _Ids, state: str | None = None, anchor: str | None = None) -> str:
    if not title:
        return ""
    badge = "" if state is None else f" {_state(state, safe(state))}"
    return f'<h{level} id="{safe(ids(anchor or slug(title)))}">{prose(title)}{badge}</h{level}>'


def _state(state: str, text: str) -> str:
    """A text, which is safe already, with the colour and the glyph of a state."""
    style = STATES.get(state)
    if style is None:
        return text
    return f'<span class="state {style}"><span aria-hidden="true">{GLYPHS[style]}</span> {text}</span>'


def _sentence(text: str | None) -> str:
    return "" if text is None else f'<p class="sentence">{prose(text)}</p>'


def _fold(content: str, summary: str | None) -> str:
    return content if summary is None else f"<details><summary>{safe(summary)}</summary>{content}</details>"


def _figure(figure: Figure, level: int, width: float, ids: _Ids) -> str:
    wide, narrow = figure.draw(width), figure.draw(NARROW)
    values = (
        "" if figure.values is None else _fold(_table(figure.values), figure.values.folded or "the same as numbers")
    )
    return (
        f'{_heading(figure.title, level, ids)}<p class="sentence">{prose(figure.sentence)}</p>'
        f'<figure data-figure="{safe(figure.name)}"><div class="wide">{wide}</div><div class="narrow">{narrow}</div>'
        f"</figure>{values}"
    )


def _table(block: Table) -> str:
    head = "".join(f'<th scope="col"{_numeric(i, block)}>{safe(text)}</th>' for i, text in enumerate(block.head))
    body = "".join(_rows(block))
    sorts = ' class="sorts"' if len(block.rows) > 1 and all(block.head) else ""
    name = safe(block.title or block.folded or "values")
    return (
        f'<div class="scroll"><table{sorts} aria-label="{name}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _numeric(column: int, block: Table) -> str:
    return ' class="n"' if column in block.numeric else ""


def _class(column: int, cell: Cell | str, block: Table) -> str:
    """Numbers are aligned; long texts keep a width at which they can be read, and the table scrolls on a phone."""
    text = cell if isinstance(cell, str) else cell.text
    return _numeric(column, block) or (' class="long"' if len(text) > _LONG else "")


def _rows(block: Table) -> Iterator[str]:
    for row in block.rows:
        marked = ' class="marked"' if row.marked else ""
        cells = "".join(f"<td{_class(i, cell, block)}{_cell(cell)}</td>" for i, cell in enumerate(row.cells))
        yield f"<tr{marked}>{cells}</tr>"


def _cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return f">{prose(cell)}"
    sort = "" if cell.sort is None else f' data-sort="{cell.sort:.12g}"'
    text = prose(cell.text)
    if cell.link is not None:
        text = f'<a href="{safe(cell.link)}">{text}</a>'
    return f"{sort}>{text if cell.state is None else _state(cell.state, text)}"
