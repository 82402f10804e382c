"""The text of `winml support`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table

if TYPE_CHECKING:
    from winml.modelkit.findings.model_knowledge import (
        KnowledgeAddition,
        KnowledgeCheck,
        KnowledgeEntry,
        KnowledgeList,
    )
    from winml.modelkit.support.batch import BatchResult
    from winml.modelkit.support.inputs import InputsResult
    from winml.modelkit.support.probe_result import InputSkeleton, ProbeResult
    from winml.modelkit.support.produce import ProduceResult
    from winml.modelkit.support.review.command import NoContribution, ReviewResult


def knowledge_list_text(result: KnowledgeList) -> str:
    rows = [("id", "status", "effort", "title")]
    rows += [(f.id, mark(f.status), f.effort or "", f.title) for f in result.findings]
    return table(rows, head=True, drop=(2,), below=3) if result.findings else "no findings match"


def finding_text(result: KnowledgeEntry) -> str:
    finding = result.finding
    scope = finding.scope
    lines = [f"{finding.id}  {finding.title}", f"  {finding.status} · {finding.source}", ""]
    lines += [f"  {finding.observation}", ""]
    facts = [
        ("observed on", ", ".join(scope.validated_on)),
        ("refuted on", ", ".join(scope.falsified_on)),
        ("not tested on", ", ".join(scope.not_yet_tested_on)),
        ("effort", finding.effort),
        ("goal reached", finding.goal_reached),
        ("recipe", finding.recipe),
        ("caveats", "; ".join(finding.gotchas)),
        ("gaps", ", ".join(finding.gaps)),
        ("why", finding.mechanism.why),
        ("evidence", finding.evidence),
        ("handled by", finding.answered_by),
    ]
    return "\n".join(lines) + table([(name, value) for name, value in facts if value], indent="  ")


def addition_text(result: KnowledgeAddition) -> str:
    return f"{result.finding} added"


def knowledge_check_text(result: KnowledgeCheck) -> str:
    counted = ", ".join(f"{count} {status}" for status, count in result.statuses.items())
    return f"{len(result.families)} families, {counted}; no problem"


def probe_text(result: ProbeResult) -> str:
    model = result.model
    parts = ", ".join(model.parts) or "one"
    about = f"family {model.family or 'none'}, task {model.task or 'none'}, parts: {parts}"
    rows = [("what", "target", "verdict", "why not")]
    tried = (result.build, *result.helps, *result.runs)
    rows += [(t.what, t.target or "", mark(t.verdict), t.message or "") for t in tried]
    words = {True: "yes", False: "no", None: "unknown"}
    known = [(o.name, words[o.applies], o.because) for o in result.obstacles]
    return "\n".join(
        [
            f"{model.reference}  {about}",
            table(rows, indent="  ", head=True, below=3),
            "obstacles",
            table(known, indent="  ", below=2),
            f"known: {', '.join((*result.knowledge, *result.recipes)) or 'nothing'}",
            *_skeleton_lines(result.skeleton, model.reference),
            result.sentence,
        ]
    )


def _skeleton_lines(found: InputSkeleton | None, model: str) -> list[str]:
    """Input specs for the user to fill in, and the command that reads them."""
    if found is None:
        return []
    proposed, reason = found.proposed, found.reason
    source = f"as {proposed.class_name} takes them" if reason is None else f"could not be determined: {reason}"
    specs = ",\n".join(f"  {json.dumps(name)}: {json.dumps(spec)}" for name, spec in proposed.inputs.items())
    lines = [f"inputs to put in a file ({source}):", f"{{\n{specs}\n}}"]
    lines.append(f"for `winml build -m {shell_word(model)} --input-specs FILE [--task TASK]`")
    if proposed.to_fill:
        lines.append(f"type, shape and values to fill in: {', '.join(proposed.to_fill)}")
    if proposed.others:
        lines.append(f"optional inputs: {', '.join(proposed.others)}")
    return lines


def inputs_text(result: InputsResult) -> str:
    rows = [(name, spec.dtype, str(list(spec.shape))) for name, spec in result.made.inputs.items()]
    return table(rows)


def produce_text(result: ProduceResult) -> str:
    made = result.contribution
    rows = [(r.rung, mark(r.verdict), r.reason) for r in made.ladder]
    listed = table(rows, indent="  ", below=2)
    return f"{result.folder}: reached {made.reached or 'nothing'} of {made.tiers.goal}\n{listed}"


def batch_text(result: BatchResult) -> str:
    """The table of several models."""
    rows = [("model", "status", "reached", "why")]
    rows += [(m.model, mark(m.status), m.reached or "", m.reason or "") for m in result.models]
    return table(rows, head=True, below=3)


def rejection_text(result: NoContribution) -> str:
    """The text for a folder that holds no contribution."""
    return f"{mark(result.verdict)}  {result.folder} · 0 commands were run again\n{_items(result)}"


def review_text(result: ReviewResult) -> str:
    """The verdict with every objection to the contribution."""
    where = ""
    if result.sandbox is not None:
        kind = result.sandbox.kind
        where = " WITHOUT a sandbox (`--unsandboxed`)" if kind == "none" else f" in a sandbox ({kind})"
    scope = result.scope
    changed = f"changed files: not checked: {scope.reason}"
    if scope.files is not None:
        changed = f"changed files since {scope.base}: {', '.join(scope.files) or 'none'}"
    head = f"{mark(result.verdict)}  {result.folder} · {len(result.rerun)} commands were run again{where}"
    return "\n".join(filter(None, [head, _items(result), changed]))


def _items(result: ReviewResult | NoContribution) -> str:
    return table([(item.check, item.severity, item.reason) for item in result.items], indent="  ", below=2)
