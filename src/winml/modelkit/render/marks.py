"""Verdicts and states with a glyph and a colour, shares as bars and rounds as a line: on a terminal only."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.render.screen import JOINT, current_screen, paint

_GLYPHS = {"good": ("✓", "+"), "bad": ("✗", "x"), "unsure": ("~", "~"), "quiet": ("·", "-")}
"""Style -> its glyph, and the one where only ASCII is shown."""
_WORDS = {
    "good": (
        # verdicts of a comparison and words for a trial
        "KEEP", "MARGINAL_KEEP", "KEEP_CONFIRMED", "faster", "kept", "confirmed",
        # targets, operators, checks, proofs
        "ready", "supported", "passed", "within", "proven", "proven on target", "reached", "identical", "intact",
        # rungs, reviews, cells, findings
        "PASS", "APPROVE", "ok", "uploaded", "published", "replicated", "holds",
        # architectures
        "right",
    ),
    "bad": (
        "DISCARD", "FAILED", "failed", "slower", "inaccurate",
        "does-not-load", "unsupported", "refused", "exceeded", "missed", "broken",
        "FAIL", "REJECT", "TIMEOUT", "timeout", "retracted", "refuted", "does not hold",
        "wrong", "crashed",
    ),
    "unsure": (
        "INCONCLUSIVE", "MARGINAL_UNCONFIRMED", "no gain", "inconclusive",
        "behind", "probably faster", "probably slower", "undecided", "not confirmed",
        "unknown", "partial", "simulated", "not proven", "proven on cpu only (target not here)",
        "REQUEST_CHANGES", "CLI-BLOCKED", "HOST-BLOCKED", "contested", "observed",
    ),
    "quiet": (
        "IDENTICAL", "BASELINE", "BASELINE_IS_BEST", "baseline", "same", "same graph", "screened out", "not measured",
        "missing", "no-device", "not available", "not run", "no change",
        "DEFERRED", "skipped", "exists-skipped", "n/a", "pending", "draft", "reported",
        "not made", "no model",
    ),
}  # fmt: skip
STATES = {word: style for style, group in _WORDS.items() for word in group}
"""Every verdict and state that is marked -> its style."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
BAR = 10
"""Columns of a bar."""
WIDE = 80
"""Columns of a terminal that has room for bars."""


def mark(state: str, text: str | None = None) -> str:
    """A verdict or a state with its glyph and colour; `text` is shown in its place where it says more."""
    shown = state if text is None else text
    style, screen = STATES.get(state), current_screen()
    if style is None or not screen.decorated:
        return shown
    return paint(style, f"{_GLYPHS[style][0 if screen.unicode else 1]} {shown}")


def with_bar(text: str, share: float) -> str:
    """A share between 0 and 1, and a bar of its length after it where a line has room for it."""
    screen = current_screen()
    if not screen.decorated or (screen.width or WIDE) < WIDE:
        return text
    share = min(max(share, 0.0), 1.0)
    if not screen.unicode:
        bar = "#" * round(share * BAR)
        return f"{text}{JOINT}{paint('bar', bar)}{' ' * (BAR - len(bar))}"
    whole, rest = divmod(round(share * BAR * 8), 8)
    bar = "█" * whole + (_EIGHTHS[rest] if rest else "")
    return f"{text}{JOINT}{paint('bar', bar)}{' ' * (BAR - len(bar))}"


def sparkline(values: Sequence[float], *, limit: int = 24) -> str:
    """Values as heights in one line, the last ones when there are many; empty where it cannot be shown."""
    screen = current_screen()
    if not screen.decorated or not screen.unicode or len(values) < 2:
        return ""
    shown = values[-limit:]
    low, high = min(shown), max(shown)
    step = (high - low) / (len(_HEIGHTS) - 1)
    heights = (_HEIGHTS[round((value - low) / step)] if step else _HEIGHTS[3] for value in shown)
    return paint("bar", "".join(heights))


def histogram(values: Sequence[float], *, bins: int = 16) -> str:
    """How often values between the least and the largest are, as heights in one line; empty for few values."""
    screen = current_screen()
    if not screen.decorated or not screen.unicode or len(values) < 2 * bins:
        return ""
    low, high = min(values), max(values)
    if high <= low:
        return ""
    counts = [0] * bins
    for value in values:
        counts[min(int((value - low) / (high - low) * bins), bins - 1)] += 1
    return paint("bar", "".join(_HEIGHTS[round(count / max(counts) * (len(_HEIGHTS) - 1))] for count in counts))
