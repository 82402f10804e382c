"""`winml kb` as a user starts it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from program import Done, failed, valid, winml

from winml.modelkit.core.evidence import MediansEvidence, SamplesEvidence
from winml.modelkit.knowledge.findings import SHIPPED, Knowledge

SEED_SESSIONS = Path(__file__).parents[1] / "knowledge" / "seed-sessions.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "my knowledge"


def kb(folder: Path, *args: str | Path) -> Done:
    return winml("kb", *args, env={**os.environ, "WINML_KNOWLEDGE": str(folder)})


def _rows(*names: str) -> list[dict[str, Any]]:
    """The sweeps that shipped findings embed, as the rows of a sessions file."""
    rows = {}
    for finding in (Knowledge().entry(name).finding for name in names):
        for evidence in (e for e in finding.evidence if isinstance(e, MediansEvidence)):
            for config in evidence.data.sweep.configs:
                where = (finding.scope.ep, finding.scope.device, evidence.model, config.id)
                rows[where] = {
                    "ep": where[0],
                    "device": where[1],
                    "model": where[2],
                    "hypothesis": where[3],
                    "opset": "auto" if config.id == "h0" else config.opset,
                    "passes": None,
                    "session_p50s_ms": list(config.sessions_ms),
                }
    return list(rows.values())


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.json"
    record = {"kind": "medians", "rows": _rows("npu-001", "npu-006", "cpu-007", "cpu-008", "cpu-009")}
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def test_list_shows_findings_of_a_target_with_their_status(folder: Path) -> None:
    value = valid(kb(folder, "list", "--target", "qnn/npu", "--json").stdout)
    assert {f["target"] for f in value["findings"]} <= {"qnn/npu", "qnn", None}
    assert next(f for f in value["findings"] if f["id"] == "npu-006")["prunes"]
    text = kb(folder, "list", "--status", "retracted").stdout
    assert "cpu-007" in text
    assert "npu-006" not in text


def test_notes_about_no_target_are_listed_when_asked_for(folder: Path) -> None:
    whole = valid(kb(folder, "list", "--json").stdout)
    general = {f["id"] for f in whole["findings"] if f["target"] is None}
    about_cpu = {f["id"] for f in whole["findings"] if f["target"] == "cpu"}
    assert general
    assert whole["not_listed"] == {"findings": 0, "gaps": 0}
    value = valid(kb(folder, "list", "--target", "cpu", "--json").stdout)
    assert {f["id"] for f in value["findings"]} == about_cpu
    assert {g["id"] for g in value["gaps"]} == {"int8-residual"}
    assert value["not_listed"]["findings"] == len(general)
    everything = valid(kb(folder, "list", "--target", "cpu", "--all", "--json").stdout)
    assert {f["id"] for f in everything["findings"]} == about_cpu | general
    text = kb(folder, "list", "--target", "cpu").stdout
    assert text.splitlines()[-1] == f"{len(general)} general notes are not shown; --all shows them"
    npu, gpu = (valid(kb(folder, "list", "--target", t, "--json").stdout)["gaps"] for t in ("qnn/npu", "qnn/gpu"))
    assert "quantized-gpu" in {g["id"] for g in gpu} - {g["id"] for g in npu}


def test_show_judges_the_evidence_again(folder: Path) -> None:
    value = valid(kb(folder, "show", "npu-006", "--json").stdout)
    assert any("supported (slower)" in (j or "") for j in value["judged"])
    assert value["missing"]["confirmed"] is None
    text = kb(folder, "show", "cpu-101").stdout
    assert "judged again: KEEP" in text


def test_check_reads_everything(folder: Path) -> None:
    value = valid(kb(folder, "check", "--json").stdout)
    assert value["problems"] == []
    assert value["statuses"]["confirmed"] == 7


def test_a_corrupt_file_is_one_error_with_path_and_field(folder: Path) -> None:
    broken = folder / "findings" / "npu-900.json"
    broken.parent.mkdir(parents=True)
    broken.write_text(json.dumps({"schema": "winml/finding/1", "id": "npu-900", "scope": {"EP": "qnn"}}), "utf-8")
    result = kb(folder, "check", "--json")
    message = failed(result, 2)
    assert "npu-900.json" in message
    assert "`title` is missing" in message
    assert valid(result.stdout)["ok"] is False


def test_damaged_samples_are_named_too(folder: Path) -> None:
    value = json.loads((SHIPPED / "findings" / "cpu-101.json").read_text(encoding="utf-8"))
    value["evidence"][0]["data"]["measurement"]["rounds"][0].pop("cpu_ns")
    mine = folder / "findings" / "cpu-101.json"
    mine.parent.mkdir(parents=True)
    mine.write_text(json.dumps(value), encoding="utf-8")
    place = "`data.measurement.rounds[0].cpu_ns` is missing"
    assert f"`evidence[0]` is damaged: {place}" in failed(kb(folder, "check"), 2)


def test_judge_answers_what_the_recorded_sessions_allow(folder: Path, sessions: Path) -> None:
    value = valid(kb(folder, "judge", sessions, "--json").stdout)
    answers = {f["id"]: f["answer"] for f in value["findings"]}
    assert answers["npu-006"] == "supported"
    assert answers["npu-001"] == "insufficient"
    assert [answers[name] for name in ("cpu-007", "cpu-008", "cpu-009")] == ["not supported"] * 3
    pairs = {(p["device"], p["model"], p["candidate"]): p for p in value["pairs"]}
    fused = pairs["npu", "microsoft/resnet-18", "h4"]
    assert (fused["answer"], fused["effect"]) == ("supported", "slower")
    assert pairs["npu", "facebook/dino-vitb16", "h3"]["effect"] == "neutral"
    assert pairs["npu", "facebook/dinov2-base", "h3"]["answer"] == "insufficient"
    slow = pairs["cpu", "facebook/dinov2-small", "h3"]
    assert slow["answer"] == "not supported"
    assert "times drift one way by 11.0 times" in slow["reason"]


def test_judge_on_everything_the_seed_recorded_on_npu_and_gpu(folder: Path) -> None:
    value = valid(kb(folder, "judge", SEED_SESSIONS, "--json").stdout)
    answers = {f["id"]: f["answer"] for f in value["findings"]}
    assert (answers["npu-006"], answers["npu-001"], answers["gpu-010"]) == ("supported", "insufficient", "insufficient")
    assert value["doubts"] == []
    opset = {p["model"]: p for p in value["pairs"] if (p["device"], p["candidate"]) == ("npu", "h3")}
    assert opset["facebook/dinov2-small"]["answer"] == "not supported"
    assert opset["facebook/dinov2-base"]["answer"] == "insufficient"
    assert "sequential" in opset["facebook/dinov2-base"]["reason"]
    assert opset["facebook/dino-vitb16"]["effect"] == "neutral"


def test_an_empty_list_of_passes_is_doubted_where_the_preset_has_some(folder: Path, sessions: Path) -> None:
    """Some write `[]` for what they do not know; a claim must not turn on that without a word."""
    record = json.loads(sessions.read_text(encoding="utf-8"))
    for row in record["rows"]:
        row["passes"] = []
    sessions.write_text(json.dumps(record), encoding="utf-8")
    result = kb(folder, "judge", sessions, "--json")
    value = valid(result.stdout)
    (fused,) = [f for f in value["findings"] if f["id"] == "npu-006"]
    assert fused["answer"] == "insufficient"
    (pair,) = [p for p in fused["pairs"] if p["model"] == "microsoft/resnet-18"]
    assert "not supported if no pass was on" in pair["reason"]
    assert "supported if that is unknown (124.7 times slower" in pair["reason"]
    assert any(d.startswith("qnn/npu: h4") for d in value["doubts"])
    assert "write null where passes were not recorded" in result.stderr


def test_judge_text_names_the_reason(folder: Path, sessions: Path) -> None:
    result = kb(folder, "judge", sessions, "--model", "facebook/dinov2-base", "--candidate", "h3", "--candidate", "h9")
    assert result.returncode == 0, result.stderr
    assert "sequential, and sessions of one config (h3) differ by 26 %" in result.stdout
    assert "h9 is not in the record" in result.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1", "is not JSON"),
        ('{"rows": []}', "`kind` is missing"),
        ('{"kind": "samples", "rows": []}', "must be `medians`"),
        ('{"kind": "medians", "rows": [{"model": "m", "hypothesis": "h", "session_p50s_ms": [0]}]}', "rows[0].session"),
        ('{"kind": "medians", "rows": [{"model": "m", "hypothesis": "h0", "sessions": []}]}', "rows[0].sessions"),
    ],
)  # fmt: skip
def test_a_sessions_file_that_does_not_fit_is_named(folder: Path, tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(content, encoding="utf-8")
    message = failed(kb(folder, "judge", path), 2)
    assert words in message
    assert "s.json" in message


def test_wrong_names_are_wrong_requests(folder: Path, sessions: Path) -> None:
    assert "npu-006" in failed(kb(folder, "show", "npu-06"), 2)
    assert "unknown rung" in failed(kb(folder, "promote", "npu-006", "L9"), 2)
    assert "unknown status" in failed(kb(folder, "list", "--status", "sure"), 2)
    assert "no model" in failed(kb(folder, "judge", sessions, "--model", "resnet"), 2)
    assert "has no experiment" in failed(kb(folder, "replay", "npu-001"), 2)
    assert "file not found" in failed(kb(folder, "judge", "none.json"), 2)
    assert "folder not found" in failed(kb(folder, "list", "--knowledge", "nowhere"), 2)
    assert not folder.exists()


@pytest.mark.qnn
def test_replays_on_the_simulator_are_kept_and_promote_a_finding(folder: Path) -> None:
    draft = json.loads((SHIPPED / "findings" / "npu-006.json").read_text(encoding="utf-8"))
    seen = [e for e in draft["evidence"] if e["form"] != "nodes"]
    mine = folder / "findings" / "npu-006.json"
    mine.parent.mkdir(parents=True)
    mine.write_text(json.dumps({**draft, "evidence": seen, "status": "draft", "confidence": "L1"}), encoding="utf-8")

    assert "has it from 0" in failed(kb(folder, "promote", "npu-006", "confirmed"), 5)
    for number in (1, 2):
        value = valid(kb(folder, "replay", "npu-006", "--json").stdout)
        assert value["outcome"]["answer"] == "holds"
        assert len(list((folder / "outcomes").glob("npu-006-*.json"))) == number
    candidate = value["outcome"]["evidence"]["data"]["candidate"]
    assert candidate["on_cpu"] == {"com.microsoft:FusedConv": 3}
    assert value["outcome"]["evidence"]["simulated"] is True
    promoted = valid(kb(folder, "promote", "npu-006", "confirmed", "--json").stdout)
    assert len(promoted["runs"]) == 2
    assert json.loads(mine.read_text(encoding="utf-8"))["status"] == "confirmed"


@pytest.mark.qnn
def test_a_replay_that_does_not_hold_is_a_check_answered_with_no(folder: Path) -> None:
    value = json.loads((SHIPPED / "findings" / "npu-101.json").read_text(encoding="utf-8"))
    value["experiment"]["expect"]["candidate_on_cpu"] = ["MatMul"]
    mine = folder / "findings" / "npu-101.json"
    mine.parent.mkdir(parents=True)
    mine.write_text(json.dumps(value), encoding="utf-8")
    result = kb(folder, "replay", "npu-101", "--json")
    assert "does not hold here" in failed(result, 5)
    assert valid(result.stdout)["outcome"]["answer"] == "does not hold"
    assert "contested" in kb(folder, "show", "npu-101").stdout
    assert "contested here" in failed(kb(folder, "check"), 5)


@pytest.mark.qnn
@pytest.mark.parametrize("name", ["npu-103", "npu-105", "npu-106", "npu-108", "npu-109", "npu-110"])
def test_failures_and_distances_are_replayed(folder: Path, name: str) -> None:
    value = valid(kb(folder, "replay", name, "--json").stdout)
    assert value["outcome"]["answer"] == "holds", value["outcome"]["reason"]


def test_a_kept_gain_becomes_a_draft_once(folder: Path, tmp_path: Path) -> None:
    evidence = Knowledge().entry("cpu-101").finding.evidence
    samples = next(e for e in evidence if isinstance(e, SamplesEvidence)).data
    line = {
        "hypothesis": "h7",
        "target": "cpu",
        "model": "digits.onnx",
        "model_type": "resnet",
        "changes": {"quantize": {"activation_type": "uint8"}},
        "verdict": samples.verdict,
        "measurement": samples.measurement,
        "note": "ignored",
    }
    dull = {**line, "hypothesis": "h8", "verdict": {**samples.verdict, "gain_pct": 4.0}}
    run = tmp_path / "run"
    run.mkdir()
    (run / "trials.jsonl").write_text("\n".join(map(json.dumps, (line, {"record": dull}))), encoding="utf-8")
    value = valid(kb(folder, "draft", run, "--json").stdout)
    assert len(value["drafts"]) == 1
    assert value["passed_over"] == [{"hypothesis": "h8", "reason": "a gain of 4.0 % is not above 10 %"}]
    name = value["drafts"][0]["id"]
    shown = valid(kb(folder, "show", name, "--json").stdout)["finding"]
    assert (shown["status"], shown["mechanism"]["confirmed"]) == ("draft", False)
    assert shown["evidence"][0]["form"] == "samples"
    again = valid(kb(folder, "draft", run, "--json").stdout)
    assert (again["drafts"], again["known"]) == ([], [name])


def test_a_run_without_trials_is_named(folder: Path, tmp_path: Path) -> None:
    assert "has no `trials.jsonl`" in failed(kb(folder, "draft", tmp_path), 2)
    (tmp_path / "trials.jsonl").write_text('{"hypothesis": "h1"}\n', encoding="utf-8")
    assert "line 1: `target` is missing" in failed(kb(folder, "draft", tmp_path), 2)
    line = {"hypothesis": "h1", "target": "cpu/npu", "verdict": {"verdict": "KEEP", "gain_pct": None}}
    for words in ("must be a number", "does not drive a npu"):
        (tmp_path / "trials.jsonl").write_text(json.dumps(line), encoding="utf-8")
        assert words in failed(kb(folder, "draft", tmp_path), 2)
        line["verdict"] = {"verdict": "KEEP", "gain_pct": 20.0}
    other = tmp_path / "x.json"
    other.write_text("{}", encoding="utf-8")
    assert "not a stored comparison" in failed(kb(folder, "draft", other), 2)


def test_report_is_one_page(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    value = valid(kb(folder, "report", "-o", page, "--json").stdout)
    assert len(value["entries"]) >= 60
    text = page.read_text(encoding="utf-8")
    names = [entry["finding"]["id"] for entry in value["entries"]]
    assert {name: text.count(f'id="{name}"') for name in names} == dict.fromkeys(names, 1)
    # The name of SVG and the policy of the page are no addresses that anything is asked of.
    addresses = text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "http" not in addresses.replace("https://json-schema.org", "")
    assert "exists" in failed(kb(folder, "report", "-o", page), 2)
