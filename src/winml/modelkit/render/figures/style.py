"""One visual language for pictures: colours by role, for light and dark pages, safe for colour-blind readers.

Colours are those of Okabe and Ito, darkened or lightened until text in them has a contrast of 4.5. No picture relies on
colour alone: verdicts have a glyph, too.
"""

from __future__ import annotations

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

_LIGHT = {
    "ink": "#1b1f24", "soft": "#59636e", "rule": "#d1d9e0", "paper": "#ffffff",
    "good": "#00704f", "bad": "#a8420a", "open": "#6b5500", "plain": "#59636e", "main": "#0a5ea8",
}  # fmt: skip
_DARK = {
    "ink": "#e6edf3", "soft": "#9aa4af", "rule": "#3d444d", "paper": "#0d1117",
    "good": "#3ccb9c", "bad": "#f58b4c", "open": "#e3c33c", "plain": "#9aa4af", "main": "#6cb6f5",
}  # fmt: skip


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--wk-{name}:{colour};" for name, colour in colours.items())


FIGURE_STYLE = (
    f".wk-figure{{{_variables(_LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{.wk-figure{{{_variables(_DARK)}}}}}"
    ".wk-figure{display:block;max-width:100%;height:auto;overflow:visible;background:none}"
    '.wk-figure text{font-family:system-ui,"Segoe UI","Helvetica Neue",Arial,sans-serif;fill:var(--wk-ink)}'
    ".wk-figure .wk-tick,.wk-figure .wk-title,.wk-figure .wk-note{fill:var(--wk-soft)}"
    ".wk-grid{stroke:var(--wk-rule);stroke-width:1;fill:none}.wk-axis{stroke:var(--wk-soft);stroke-width:1;fill:none}"
    ".wk-zero{stroke:var(--wk-soft);stroke-width:1.5;stroke-dasharray:5 4;fill:none}"
    ".wk-line{stroke:var(--wk-main);stroke-width:2;fill:none}.wk-bar{fill:var(--wk-main)}"
    ".wk-round{fill-opacity:.45}.wk-good{color:var(--wk-good)}.wk-bad{color:var(--wk-bad)}"
    ".wk-open{color:var(--wk-open)}.wk-plain{color:var(--wk-plain)}.wk-main{color:var(--wk-main)}"
    ".wk-good,.wk-bad,.wk-open,.wk-plain,.wk-main{fill:currentColor;stroke:currentColor}"
    ".wk-figure .wk-good text,.wk-figure .wk-bad text,.wk-figure .wk-open text,.wk-figure .wk-plain text"
    "{fill:currentColor;stroke:none}"
    ".wk-figure .wk-whisker{fill:none;stroke-width:3}"
    ".wk-figure .wk-interval{fill:none;stroke-width:1.5;stroke-opacity:.6}"
    ".wk-mark:focus{outline:2px solid var(--wk-main);outline-offset:2px}"
    "@media print{.wk-figure{" + _variables(_LIGHT) + "}}"
)
"""The style of pictures; every name in it begins with `wk-`, so that it changes nothing else in a page or notebook."""
