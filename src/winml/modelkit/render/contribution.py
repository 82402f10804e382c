"""A contribution as the description of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.core import plain_text
from winml.modelkit.render.table import markdown_table

if TYPE_CHECKING:
    from winml.modelkit.support.batch import BatchResult
    from winml.modelkit.support.review.contribution import Contribution


def _items(value: Contribution) -> list[str]:
    """The nine items of a report."""
    tiers, probe = value.tiers, value.probe
    obstacles = ", ".join(probe.obstacles) or "none"
    covered = {True: "the exporter covers it", False: "the exporter does not cover it", None: "it is not exported"}
    return [
        "1. Recipe: " + ("none" if value.recipe is None else f"`recipe.json` (`{value.recipe}`)"),
        f"2. Row for the list of models: {value.index_row}",
        "3. Build folder: `artifacts/recipe`",
        "4. Build log: `evidence/build-recipe.log`",
        "5. Findings added: " + (", ".join(f"`{f}`" for f in value.findings) or "none"),
        f"6. Probe: {probe.sentence} ({covered[probe.covered]}; obstacles: {obstacles})",
        f"7. Tiers: effort {tiers.effort}, goal {tiers.goal}, outcome {tiers.outcome}",
        f"8. Ladder: reached {value.reached or 'nothing'}, see below",
        f"9. Methodology: {value.methodology.statement}",
    ]


def contribution_markdown(made: Contribution) -> str:
    """The report with its nine items, ladder, numbers and environment."""
    value: Contribution = plain_text.values(made, plain_text.markdown)
    model, found = value.model, value.effect
    effect = "No effect against the default was measured."
    if found is not None:
        gain = "" if found.gain_pct is None else f", {found.gain_pct:.1f} % less"
        effect = f"Effect against the default ({found.kind}): {found.because}{gain}."
    # A table makes its cells safe itself.
    numbers = [(step, name, f"{number:.6g}") for step, of in made.numbers.items() for name, number in of.items()]
    lines = [
        f"# Support of {model.reference.replace(chr(92), '/').rstrip('/').rpartition('/')[2]}",
        "",
        f"Model `{model.digest}`, family {model.family or 'none'}, task {model.task or 'none'}, "
        f"parts: {', '.join(model.parts) or 'one'}. "
        f"Precision {value.precision}, on {', '.join(value.targets)}.",
        "",
        *_items(value),
        "",
        effect,
        "",
        "## Ladder",
        "",
        markdown_table(("rung", "verdict", "why"), [(r.rung, r.verdict, r.reason) for r in made.ladder]),
        "",
        "Artifact levels: " + ("; ".join(f"{part} {', '.join(of)}" for part, of in value.levels.items()) or "none"),
        "",
        "## Numbers",
        "",
        markdown_table(("command", "number", "value"), numbers),
        "",
        "## Environment",
        "",
        ", ".join(f"{name} {version}" for name, version in value.environment.items()),
        "",
        f"Made at {value.created}. Review it with `winml support review`.",
    ]
    return "\n".join(lines) + "\n"


def batch_markdown(result: BatchResult) -> str:
    """The results of several models, as a table."""
    rows = [
        (m.model.replace(chr(92), "/").rpartition("/")[2], m.status, m.reached or "", m.reason or "")
        for m in result.models
    ]
    return markdown_table(("model", "status", "reached", "why"), rows) + "\n"
