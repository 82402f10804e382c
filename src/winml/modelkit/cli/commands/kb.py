"""`winml kb`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import (
    HELP,
    examples,
    json_option,
    knowledge_option,
    output_option,
    trust_of,
    trust_option,
)


@click.group(
    "kb",
    help="The knowledge base: what is known about execution providers, with its evidence.",
    epilog=examples(
        "winml kb list --target qnn/npu",
        "winml kb show npu-006",
        "winml kb replay npu-006",
        "winml kb judge sessions.json",
        "winml kb report -o findings.html",
    ),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


@command.command(
    "list",
    help="List findings, gaps included.",
    epilog=examples("winml kb list", "winml kb list --target qnn/npu --status confirmed"),
    context_settings=HELP,
)
@click.option("--target", metavar="EP[/DEVICE]", help="Only findings about this target.")
@click.option("--all", "with_general", is_flag=True, help="With --target, also general notes, which are about no EP.")
@click.option("--status", metavar="STATUS", help="Only draft, replicated, confirmed, contested or retracted ones.")
@knowledge_option
@json_option
def listing(target: str | None, with_general: bool, status: str | None, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.kb_command import list_findings
    from winml.modelkit.render.kb import list_text

    result = list_findings(knowledge, target=target, status=status, with_general=with_general)
    console.show_result(list_text, result, as_json=as_json)


@command.command(
    "show",
    help="Show a finding with its evidence, judged again.",
    epilog=examples("winml kb show npu-006", "winml kb show npu-006 --json"),
    context_settings=HELP,
)
@click.argument("finding")
@knowledge_option
@json_option
def show(finding: str, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.kb_command import show_finding
    from winml.modelkit.render.kb import finding_text

    console.show_result(finding_text, show_finding(knowledge, finding), as_json=as_json)


@command.command(
    "check",
    help="Check all findings strictly and judge their evidence again; exit 5 on contradictions.",
    epilog=examples("winml kb check", "winml kb check --knowledge my-findings"),
    context_settings=HELP,
)
@knowledge_option
@json_option
def check(knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.kb_command import check_knowledge
    from winml.modelkit.render.kb import check_text

    console.show_result(check_text, check_knowledge(knowledge), as_json=as_json)


@command.command(
    "judge",
    help="Judge recorded session medians: every config in FILE against the base, and the findings about them.",
    epilog=examples("winml kb judge sessions.json", "winml kb judge sessions.json --model microsoft/resnet-18 --json"),
    context_settings=HELP,
)
@click.argument("file")
@click.option("-m", "--model", metavar="MODEL", help="Only this model of the file.")
@click.option("--base", default="h0", show_default=True, metavar="ID", help="The config others are judged against.")
@click.option("--candidate", "candidates", multiple=True, metavar="ID", help="Only these configs.")
@knowledge_option
@json_option
def judge(
    file: str, model: str | None, base: str, candidates: tuple[str, ...], knowledge: str | None, as_json: bool
) -> None:
    from winml.modelkit.findings.kb_command import judge_sessions
    from winml.modelkit.render.kb import judgement_text

    result = judge_sessions(knowledge, file, model=model, base=base, candidates=candidates)
    for doubt in result.doubts:
        console.say("warning", doubt)
    console.show_result(judgement_text, result, as_json=as_json)


@command.command(
    "replay",
    help="Run a finding's experiment on this machine and keep the outcome; exit 5 when it does not hold.",
    epilog=examples("winml kb replay npu-006", "winml kb replay npu-006 --json"),
    context_settings=HELP,
)
@click.argument("finding")
@knowledge_option
@trust_option
@json_option
def replay(finding: str, knowledge: str | None, as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.compare_progress import CompareProgress
    from winml.modelkit.findings.kb_command import replay_finding
    from winml.modelkit.render.kb import replay_text

    with CompareProgress() as progress:
        result = replay_finding(knowledge, finding, progress.on_event, trust=trust_of(given))
    console.show_result(replay_text, result, as_json=as_json)
    if not as_json:
        console.say("wrote", result.file)
        console.say("next", f"winml kb show {console.quote(finding)}")


@command.command(
    "promote",
    help="Promote a finding to RUNG (replicated, confirmed, L1 to L5); exit 5 when evidence is missing.",
    epilog=examples("winml kb promote npu-006 confirmed", "winml kb promote cpu-101 L2"),
    context_settings=HELP,
)
@click.argument("finding")
@click.argument("rung")
@knowledge_option
@json_option
def promote(finding: str, rung: str, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.kb_command import promote_finding
    from winml.modelkit.render.kb import promotion_text

    result = promote_finding(knowledge, finding, rung)
    console.show_result(promotion_text, result, as_json=as_json)
    if not as_json:
        console.say("wrote", result.file)
        console.say("next", f"winml kb show {console.quote(finding)}")


@command.command(
    "draft",
    help="Draft findings from the kept gains above 10 % in RUN: a stored comparison, or a folder with trials.jsonl.",
    epilog=examples("winml kb draft compare.json", "winml kb draft runs/bert"),
    context_settings=HELP,
)
@click.argument("run")
@knowledge_option
@json_option
def draft(run: str, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.findings.kb_command import draft_from_run
    from winml.modelkit.render.kb import drafts_text

    result = draft_from_run(knowledge, run)
    console.show_result(drafts_text, result, as_json=as_json)
    if not as_json and result.drafts:
        console.say("wrote", result.folder)
        console.say("next", f"winml kb show {console.quote(result.drafts[0].id)}")


@command.command(
    "report",
    help="Write one HTML page about all findings, by execution provider.",
    epilog=examples("winml kb report -o findings.html", "winml kb report -o findings.html --overwrite"),
    context_settings=HELP,
)
@output_option("FILE.html", "The page.", required=True)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@knowledge_option
@json_option
def report(output: str, overwrite: bool, knowledge: str | None, as_json: bool) -> None:
    from winml.modelkit.cli.results import ResultFile
    from winml.modelkit.findings import kb_command
    from winml.modelkit.render.kb import report_text
    from winml.modelkit.render.pages.html import page_html
    from winml.modelkit.render.pages.kb import kb_page

    file = ResultFile(output, overwrite=overwrite, as_json=as_json)
    result = kb_command.report(knowledge, output)
    file.write_page(page_html(kb_page(result)))
    console.show_result(report_text, result, as_json=as_json)
    file.say_wrote()
