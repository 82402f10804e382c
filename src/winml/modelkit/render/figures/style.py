"""One visual language for pictures: colours by role, for light and dark pages, safe for colour-blind readers.

Colours are those of Okabe and Ito, darkened or lightened until text in them has a contrast of 4.5. No picture relies on
colour alone: verdicts and execution providers have a glyph, too.
"""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass

GLYPHS = {"KEEP": "✓", "MARGINAL_KEEP": "✓", "DISCARD": "✗", "INCONCLUSIVE": "~", "IDENTICAL": "=", "FAILED": "!"}
"""The sign of a verdict."""

ROLES = {
    "KEEP": "good",
    "MARGINAL_KEEP": "good",
    "DISCARD": "bad",
    "INCONCLUSIVE": "open",
    "IDENTICAL": "plain",
    "FAILED": "bad",
}
"""The colour of a verdict."""

STATE_GLYPHS = {"good": "✓", "bad": "✗", "unsure": "~", "quiet": "·"}
"""Style of a state in `render/marks.py` -> its sign in pages and pictures."""

STATE_ROLES = {"good": "good", "bad": "bad", "unsure": "open", "quiet": "plain"}
"""Style of a state in `render/marks.py` -> its colour in a picture."""


@dataclass(frozen=True)
class EPStyle:
    """How an execution provider looks in a picture."""

    role: str
    glyph: str


_EPS = {
    "cpu": EPStyle("main", "●"),
    "qnn": EPStyle("violet", "■"),
    "openvino": EPStyle("teal", "▲"),
    "dml": EPStyle("ochre", "◆"),
    "cuda": EPStyle("rose", "▼"),
    "tensorrt": EPStyle("rose", "★"),
    "vitisai": EPStyle("ochre", "★"),
}
_OTHER_EP = EPStyle("plain", "○")


def ep_style(ep: str) -> EPStyle:
    """By the short name of an EP (`qnn`) or by ONNX Runtime's (`QNNExecutionProvider`)."""
    name = ep.lower().removesuffix("executionprovider")
    return _EPS.get(name, _OTHER_EP)


LIGHT = {
    "ink": "#1b1f24", "soft": "#59636e", "rule": "#d1d9e0", "paper": "#ffffff", "shade": "#f3f5f7",
    "good": "#00704f", "bad": "#a8420a", "open": "#6b5500", "plain": "#59636e", "main": "#0a5ea8",
    "violet": "#8a3c8f", "teal": "#006a6a", "ochre": "#8a5a00", "rose": "#b0305c",
}  # fmt: skip
DARK = {
    "ink": "#e6edf3", "soft": "#9aa4af", "rule": "#3d444d", "paper": "#0d1117", "shade": "#171c23",
    "good": "#3ccb9c", "bad": "#f58b4c", "open": "#e3c33c", "plain": "#9aa4af", "main": "#6cb6f5",
    "violet": "#d9a3dc", "teal": "#4fc9c9", "ochre": "#e0b050", "rose": "#f58bb0",
}  # fmt: skip
_DRAWN = ("good", "bad", "open", "plain", "main", "violet", "teal", "ochre", "rose")
"""Colours that marks may have, as classes `wk-NAME`."""


def variables(selector: str) -> str:
    """Colours for an element and what is in it: light, dark where the reader prefers it, light on paper."""
    light, dark = ("".join(f"--wk-{name}:{colour};" for name, colour in one.items()) for one in (LIGHT, DARK))
    return (
        f"{selector}{{{light}}}@media (prefers-color-scheme:dark){{{selector}{{{dark}}}}}"
        f"@media print{{{selector}{{{light}}}}}"
    )


FIGURE_RULES = (
    ".wk-figure{display:block;max-width:100%;height:auto;overflow:visible;background:none}"
    '.wk-figure text{font-family:system-ui,"Segoe UI","Helvetica Neue",Arial,sans-serif;fill:var(--wk-ink)}'
    ".wk-figure .wk-tick,.wk-figure .wk-title,.wk-figure .wk-note{fill:var(--wk-soft)}"
    # What lies behind a label does not cross it.
    ".wk-figure .wk-label{paint-order:stroke;stroke:var(--wk-paper);stroke-width:4px;stroke-linejoin:round}"
    ".wk-grid{stroke:var(--wk-rule);stroke-width:1;fill:none}.wk-axis{stroke:var(--wk-soft);stroke-width:1;fill:none}"
    ".wk-zero{stroke:var(--wk-soft);stroke-width:1.5;stroke-dasharray:5 4;fill:none}"
    ".wk-line{stroke:var(--wk-main);stroke-width:2;fill:none}.wk-bar{fill:var(--wk-main)}"
    ".wk-round{fill-opacity:.45}"
    + "".join(f".wk-{name}{{color:var(--wk-{name})}}" for name in _DRAWN)
    + ",".join(f".wk-{name}" for name in _DRAWN)
    + "{fill:currentColor;stroke:currentColor}"
    + ",".join(f".wk-figure .wk-{name} text" for name in _DRAWN)
    + "{fill:currentColor;stroke:none}"
    ".wk-figure .wk-solid{stroke:none}.wk-figure .wk-tint{fill-opacity:.16;stroke-width:1}"
    ".wk-figure .wk-on text,.wk-figure text.wk-on{fill:var(--wk-ink);stroke:none}"
    ".wk-leader{stroke:var(--wk-soft);stroke-width:.75;fill:none}.wk-figure .wk-strong{font-weight:600}"
    ".wk-band{fill:var(--wk-main);fill-opacity:.12;stroke:none}"
    ".wk-figure text.wk-key{fill:currentColor;stroke:none}"
    ".wk-figure .wk-soft text{fill:var(--wk-soft);stroke:none}"
    ".wk-figure .wk-paper text{fill:var(--wk-paper);stroke:none}"
    ".wk-figure .wk-whisker{fill:none;stroke-width:3}"
    ".wk-figure .wk-interval{fill:none;stroke-width:1.5;stroke-opacity:.6}"
    ".wk-figure .wk-path{fill:none;stroke-width:2}"
    ".wk-figure .wk-open-dot{fill:var(--wk-paper);stroke-width:2}"
    ".wk-figure text.wk-halo{paint-order:stroke;stroke:var(--wk-paper);stroke-width:4;stroke-linejoin:round}"
    ".wk-mark:focus{outline:2px solid var(--wk-main);outline-offset:2px}"
)
"""What classes in pictures look like, by colours that an element around them has."""

FIGURE_STYLE = variables(".wk-figure") + FIGURE_RULES
"""The style of a picture alone; every name in it begins with `wk-`, so that it changes nothing else in a notebook."""
