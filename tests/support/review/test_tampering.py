"""Ways to cheat or to err, each caught. Most are made by a forger who also mends every digest."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sandbox_zoo
from published import validator
from winml.modelkit.core.errors import CheckFailed, RequestError, UnavailableError
from winml.modelkit.core.values import read, to_json
from winml.modelkit.render.contribution import contribution_markdown
from winml.modelkit.render.support import review_text
from winml.modelkit.store import digest
from winml.modelkit.support import place as support_place
from winml.modelkit.support.review import checklist, derive
from winml.modelkit.support.review.command import (
    NoContribution,
    ReviewedContribution,
    ReviewReading,
    ReviewRequest,
    ReviewResult,
    ScopeAnswer,
    StepAgain,
    read_against_itself,
    review,
)
from winml.modelkit.support.review.contribution import Contribution, Tiers
from winml.modelkit.support.review.dossier import LARGEST_BYTES, Dossier
from winml.modelkit.support.review.evidence import below
from winml.modelkit.support.review.results import PerfEvidence

pytestmark = pytest.mark.xdist_group("support")

Json = dict[str, Any]


class Forger:
    """Edits a contribution, and makes its digests agree with what was edited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: str) -> Json:
        value: Json = json.loads((self.folder / path).read_text(encoding="utf-8"))
        return value

    def edit(self, path: str, change: Callable[[Json], Any]) -> None:
        value = self.read(path)
        change(value)
        self.replace(path, json.dumps(value).encode())

    def replace(self, path: str, content: bytes) -> None:
        """Write a file anew: those of a build are links into the cache."""
        (self.folder / path).unlink(missing_ok=True)
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(content)

    def copy(self, source: str, path: str) -> None:
        self.replace(path, (self.folder / source).read_bytes())

    def number(self, step: str, **values: float) -> None:
        self.claim(lambda c: c["numbers"][step].update(values))

    def manifest(self, part: str) -> None:
        """Another digest in the manifest of the recipe's build."""
        other = {"digest": "sha256:" + "0" * 64}
        self.edit("artifacts/recipe/build_manifest.json", lambda m: m[part].update(other))

    def result(self, step: str, change: Callable[[Json], Any]) -> None:
        self.edit(f"evidence/{step}.result.json", change)

    def record(self, step: str, change: Callable[[Json], Any]) -> None:
        self.edit(f"evidence/{step}.json", change)

    def claim(self, change: Callable[[Json], Any]) -> None:
        self.edit("contribution.json", change)

    def mend(self) -> None:
        """Every digest and the report as if nothing had happened."""
        for step in self.read("contribution.json")["steps"]:
            if (self.folder / f"evidence/{step}.json").is_file():
                self.record(step, self._mended)
        files = {p: digest.of_file(self.folder / p) for p in below(self.folder) if not p.startswith("contribution.")}
        self.claim(lambda c: c.update(files=files))
        self.replace(
            "contribution.md", contribution_markdown(read(Contribution, self.read("contribution.json"))).encode()
        )

    def _mended(self, record: Json) -> None:
        name = record["id"]
        for key, path in (("result", f"evidence/{name}.result.json"), ("log", f"evidence/{name}.log")):
            record[key] = digest.of_file(self.folder / path) if (self.folder / path).is_file() else None
        for used in (record["reads"], record["writes"]):
            for path in [p for p in used if not (self.folder / p).is_file()]:
                del used[path]
            used.update({path: digest.of_file(self.folder / path) for path in used})


def _fewer_samples(forger: Forger) -> None:
    forger.result("perf-cpu", lambda r: [x["wall_ns"].pop() and x["cpu_ns"].pop() for x in r["measurement"]["rounds"]])


def _no_samples(forger: Forger) -> None:
    forger.result("perf-cpu", lambda r: r["measurement"].update(rounds=[]))


def _better_scores(forger: Forger) -> None:
    forger.result("metric", lambda r: r["samples"]["candidate"]["series"].update(top1="1", top5="1"))


def _better_metric(forger: Forger) -> None:
    forger.result("metric", lambda r: r["metrics"]["accuracy"].update(value=0.9999))
    forger.number("metric", metric=0.9999)


def _log(forger: Forger, content: bytes) -> None:
    forger.replace("evidence/perf-cpu.log", content)


def _other_log(forger: Forger) -> None:
    text = (forger.folder / "evidence/perf-cpu.log").read_text(encoding="utf-8")
    _log(forger, text.replace("sha256:", "sha256:0", 1).encode())


def _artifact_of_the_default(forger: Forger) -> None:
    shutil.rmtree(forger.folder / "artifacts/recipe")
    shutil.copytree(forger.folder / "artifacts/default", forger.folder / "artifacts/recipe")


def _default_inspected(forger: Forger) -> None:
    """The fp32 build under the name of the fp16 one, inspected and listed as such."""
    _artifact_of_the_default(forger)
    config = forger.read("artifacts/recipe/build_config.json")
    forger.replace("artifacts/recipe/build_config.json", json.dumps({**config, "precision": "fp16"}).encode())
    forger.replace(
        "evidence/inspect-recipe.result.json", (forger.folder / "evidence/inspect-default.result.json").read_bytes()
    )
    built = forger.read("evidence/build-default.result.json")
    forger.result("build-recipe", lambda r: r.update(artifact=built["artifact"]))


def _without_parity(forger: Forger) -> None:
    for ending in ("json", "result.json", "log"):
        (forger.folder / f"evidence/parity.{ending}").unlink()
    (forger.folder / "outputs/model.npz").unlink()
    forger.claim(lambda c: c["steps"].remove("parity"))


def _no_build_part(recipe: Json) -> None:
    recipe["build"] = {}


def _as_default(forger: Forger) -> None:
    forger.replace(
        "evidence/config-recipe.result.json", (forger.folder / "evidence/config-default.result.json").read_bytes()
    )


def _code(forger: Forger, path: str) -> None:
    forger.replace(f"code/{path}", b"# code\n")


def _stale(forger: Forger) -> None:
    for step in forger.read("contribution.json")["steps"]:
        forger.record(step, lambda r: r["environment"].update(onnxruntime="1.20.0"))
    forger.claim(lambda c: c["environment"].update(onnxruntime="1.20.0"))


def _other_python(forger: Forger) -> None:
    for step in forger.read("contribution.json")["steps"]:
        forger.record(step, lambda r: r["environment"].update(numpy="1.0.0"))
    forger.claim(lambda c: c["environment"].update(numpy="1.0.0"))


def _finding(forger: Forger) -> None:
    value = {
        "id": "toy-001",
        "title": "t",
        "observation": "o",
        "status": "reported",
        "source": "s",
        "added": "2026-11-16",
    }
    forger.replace("findings/toy-001.json", json.dumps(value).encode())
    forger.claim(lambda c: c.update(findings=["toy-001"]))


def _cosine(forger: Forger, value: float) -> None:
    forger.result("parity", lambda r: r["distance"][0].update(cosine={"min": value, "median": value}))
    forger.result("parity", lambda r: r["distance"][0]["max_abs"].update(max=9.0))
    forger.claim(lambda c: c["numbers"]["parity"].update(cosine=value, max_abs=9.0))


def _rung(index: int, **values: Any) -> Callable[[Forger], None]:
    return lambda f: f.claim(lambda c: c["ladder"][index].update(values))


def _array(forger: Forger, name: str, change: Callable[[Any], Any]) -> None:
    """Another value in the kept outputs, with every digest mended."""
    with np.load(forger.folder / "outputs/model.npz") as found:
        arrays = {key: found[key] for key in found.files}
    arrays[name] = change(arrays[name])
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    forger.replace("outputs/model.npz", stream.getvalue())
    of_value, of_file = (digest.of_bytes(b) for b in (arrays[name].tobytes(), stream.getvalue()))

    def mend(kept: Json) -> None:
        kept.update(digest=of_file)
        kept["arrays"][name].update(digest=of_value)

    forger.result("parity", lambda r: mend(r["outputs"]))


def _one_output_less(forger: Forger) -> None:
    """An output that nobody compared, as if the artifact had one more."""
    more = {"name": "other", "dtype": "float32", "shape": [1, 10]}
    for step in ("inspect-default", "inspect-recipe"):
        forger.result(step, lambda r: r["facts"]["outputs"].append(more))


def _proof(recipe: Json) -> None:
    where = {"family": "another", "model": "another", "target": "qnn/npu", "simulated": False}
    recipe.update(proven=[where | {"outcome": "proven", "goal": "L3", "review": "APPROVE", "shows": "everything"}])


def _template(forger: Forger) -> None:
    """A recipe that owes a template names one that is nowhere."""
    forger.edit("recipe.json", lambda r: r.update(template="a-good-one"))
    forger.claim(lambda c: c["tiers"].update(effort="L0"))


def _only_words(forger: Forger) -> None:
    """An effort of code whose code is a page."""
    _code(forger, "docs/catalog.md")
    forger.claim(lambda c: c["tiers"].update(effort="L1"))


def _other_machine(forger: Forger) -> None:
    forger.result("perf-cpu", lambda r: r["environment"]["machine"].update(cpu="a faster one"))


def _twice(forger: Forger) -> None:
    """A metric that is given twice: people read the first, programs the last."""
    text = (forger.folder / "evidence/metric.result.json").read_text(encoding="utf-8")
    forger.replace("evidence/metric.result.json", text.replace("{", '{"metric": "accuracy of 100 %", ', 1).encode())


def _nested(forger: Forger) -> None:
    forger.replace("evidence/parity.result.json", b"[" * 100_000)


def _slow_samples(forger: Forger) -> None:
    forger.record("perf-cpu", lambda r: r.update(seconds=1e-6))


def _kept(change: Callable[[Json], Any]) -> Callable[[Forger], Any]:
    return lambda f: f.result("parity", lambda r: change(r["outputs"]))


CAUGHT: dict[str, tuple[Callable[[Forger], Any], bool, str]] = {
    "an edited number": (lambda f: f.number("perf-cpu", latency_p50_ms=0.1), True, "numbers"),
    "a number nothing gives": (lambda f: f.number("perf-cpu", joules=1.0), True, "numbers"),
    "a number left out": (lambda f: f.claim(lambda c: c["numbers"].pop("parity")), True, "numbers"),
    "an edited summary": (lambda f: f.result("perf-cpu", lambda r: r["latency_ms"].update(p99=0.1)), True, "numbers"),
    "an interval made narrow": (
        lambda f: f.result("perf-cpu", lambda r: r["latency_ms"]["interval"].update(high=r["latency_ms"]["p50"])),
        True,
        "numbers",
    ),
    "samples left out": (_fewer_samples, True, "numbers"),
    "no samples at all": (_no_samples, True, "evidence"),
    "scores that are better": (_better_scores, True, "numbers"),
    "a better metric": (_better_metric, True, "numbers"),
    "a swapped artifact": (lambda f: f.replace("artifacts/recipe/model.onnx", b"other"), False, "files"),
    "a swapped artifact, listed": (lambda f: f.replace("artifacts/recipe/model.onnx", b"other"), True, "artifacts"),
    "the build of another model": (lambda f: f.manifest("source"), True, "artifacts"),
    "another artifact in the manifest": (lambda f: f.manifest("artifact"), True, "artifacts"),
    "an inflated default": (
        lambda f: f.result("inspect-default", lambda r: r["files"][0].update(bytes=10**7)),
        True,
        "artifacts",
    ),
    "an fp16 name on an fp32 file": (_default_inspected, True, "precision"),
    "another precision": (lambda f: f.claim(lambda c: c.update(precision="fp32", cosine=0.9999)), True, "artifacts"),
    "an unknown precision": (lambda f: f.claim(lambda c: c.update(precision="fp99")), True, "thresholds"),
    "a threshold too low": (lambda f: f.claim(lambda c: c.update(cosine=0.5)), True, "thresholds"),
    "outputs of the reference made nearer": (
        lambda f: _array(f, "reference.0.0", lambda v: v * 0.5), True, "outputs",
    ),
    "outputs of the artifact made nearer": (
        lambda f: _array(f, "candidate.0.1", lambda v: v + np.float32(0.25)), True, "outputs",
    ),
    "a distance that its outputs do not give": (
        lambda f: f.result("parity", lambda r: r["distance"][0]["cosine"].update(median=1.0)), True, "outputs",
    ),
    "outputs that are missing": (lambda f: (f.folder / "outputs/model.npz").unlink(), True, "outputs"),
    "outputs that are no arrays": (
        lambda f: f.replace("outputs/model.npz", b"PK") or _kept(lambda k: k.update(digest=digest.of_bytes(b"PK")))(f),
        True,
        "outputs",
    ),
    "outputs of another file": (lambda f: f.copy("inputs/model.npz", "outputs/model.npz"), True, "outputs"),
    "outputs kept in part": (_kept(lambda k: k["arrays"]["candidate.0.0"].update(whole=False)), True, "outputs"),
    "outputs that nobody described": (_kept(lambda k: k["arrays"].pop("reference.0.3")), True, "outputs"),
    "no word about outputs": (lambda f: f.result("parity", lambda r: r.update(outputs=None)), True, "evidence"),
    "an output that was not compared": (_one_output_less, True, "outputs"),
    "fewer inputs than the plan has": (
        lambda f: f.result("parity", lambda r: r["distance"][0].update(runs=1)), True, "outputs",
    ),
    "a file that belongs to nothing": (lambda f: f.replace("artifacts/extra.bin", b"x"), True, "evidence"),
    "a file among what a build wrote": (lambda f: f.replace("artifacts/recipe/extra.bin", b"x"), True, "evidence"),
    "a file beside the recipe": (lambda f: f.replace("setup.py", b"x"), True, "evidence"),
    "a command that read nothing": (lambda f: f.record("perf-cpu", lambda r: r.update(reads={})), True, "evidence"),
    "a command that wrote nothing": (lambda f: f.record("parity", lambda r: r.update(writes={})), True, "evidence"),
    "a command that ran before the one before it": (
        lambda f: f.record("parity", lambda r: r.update(started="2020-01-01T00:00:00Z")), True, "evidence",
    ),
    "a contribution of tomorrow": (
        lambda f: f.claim(lambda c: c.update(created="2999-01-01T00:00:00Z")), True, "environment",
    ),
    "samples longer than their command": (_slow_samples, True, "evidence"),
    "the result of another command": (
        lambda f: f.result("parity", lambda r: r.update(schema="winml/perf/1")), True, "evidence",
    ),
    "numbers of another target": (
        lambda f: f.result("perf-cpu", lambda r: r.update(target="openvino/cpu")), True, "numbers",
    ),
    "numbers of two machines": (_other_machine, True, "environment"),
    "another version in the head": (lambda f: f.claim(lambda c: c.update(winml="9.9.9")), True, "environment"),
    "another task than the probe's": (
        lambda f: f.claim(lambda c: c["model"].update(task="object-detection")), True, "probe",
    ),
    "a line that says more": (
        lambda f: f.claim(lambda c: c.update(index_row=c["index_row"].replace("cpu", "cpu, qnn/npu"))), True, "row",
    ),
    "a line without columns": (lambda f: f.claim(lambda c: c.update(index_row="best model")), True, "row"),
    "a proof that nothing shows": (lambda f: f.edit("recipe.json", _proof), True, "recipe"),
    "a template that is nowhere": (_template, True, "tiers"),
    "an effort of code that is a page": (_only_words, True, "tiers"),
    "a key that is given twice": (_twice, True, "evidence"),
    "JSON that is nested too deeply": (_nested, True, "evidence"),
    "JSON in another encoding": (
        lambda f: f.replace("evidence/parity.result.json", '{"ok": "é"}'.encode("latin-1")), True, "evidence",
    ),
    "a number that is none": (
        lambda f: f.replace("evidence/parity.result.json", b'{"ok": true, "metric": NaN}'), True, "evidence",
    ),
    "a report in another encoding": (lambda f: f.replace("contribution.md", b"\xff\xfe"), False, "report"),
    "a report that leads out of the folder": (
        lambda f: (f.folder / "contribution.md").unlink() or (f.folder / "contribution.md").symlink_to("/etc/hosts"),
        False,
        "files",
    ),
    "a folder that leads out of the folder": (
        lambda f: shutil.move(f.folder / "inputs", f.folder.parent / "elsewhere")
        and (f.folder / "inputs").symlink_to(f.folder.parent / "elsewhere"),
        False,
        "files",
    ),
    "a path that leads out of the folder": (
        lambda f: f.claim(lambda c: c["files"].update({"../elsewhere": "sha256:" + "0" * 64})), False, "files",
    ),
    "a path of the machine": (
        lambda f: f.claim(lambda c: c["files"].update({"/etc/hosts": digest.of_file("/etc/hosts")})), False, "files",
    ),
    "a path with backslashes": (
        lambda f: f.claim(lambda c: c["files"].update({"inputs\\model.npz": c["files"]["inputs/model.npz"]})),
        False,
        "files",
    ),
    "an empty log": (lambda f: _log(f, b""), True, "evidence"),
    "the log of another model": (_other_log, True, "evidence"),
    "the log of another command": (
        lambda f: _log(f, (f.folder / "evidence/parity.log").read_bytes()), True, "evidence",
    ),
    "a log that is cut off": (
        lambda f: _log(f, (f.folder / "evidence/perf-cpu.log").read_bytes()[:-7]), True, "evidence",
    ),
    "a missing log": (lambda f: (f.folder / "evidence/perf-cpu.log").unlink(), False, "files"),
    "a file nobody listed": (lambda f: f.replace("artifacts/extra.bin", b"x"), False, "files"),
    "evidence of no command": (lambda f: f.replace("evidence/extra.json", b"{}"), True, "evidence"),
    "a link out of the folder": (
        lambda f: (f.folder / "artifacts/link").symlink_to("/etc/hosts") or f.claim(
            lambda c: c["files"].update({"artifacts/link": digest.of_file("/etc/hosts")})
        ),
        False,
        "files",
    ),
    "copied evidence": (
        lambda f: f.copy("evidence/parity.json", "evidence/perf-cpu.json"), True, "evidence",
    ),
    "a result that is no JSON": (lambda f: f.replace("evidence/parity.result.json", b'{"ok": tr'), True, "evidence"),
    "a result that is a list": (lambda f: f.replace("evidence/parity.result.json", b"[]"), True, "evidence"),
    "a missing result": (lambda f: (f.folder / "evidence/parity.result.json").unlink(), True, "evidence"),
    "a result without its parts": (lambda f: f.result("perf-cpu", lambda r: r.pop("measurement")), True, "evidence"),
    "exit 0 over a failure": (lambda f: f.result("parity", lambda r: r.update(ok=False)), True, "evidence"),
    "another exit code": (lambda f: f.record("parity", lambda r: r.update(exit_code=1)), True, "evidence"),
    "a kinder verdict": (lambda f: f.record("parity", lambda r: r.update(verdict="HOST-BLOCKED")), True, "evidence"),
    "a timeout with an exit code": (lambda f: f.record("parity", lambda r: r.update(timed_out=True)), True, "evidence"),
    "other words": (lambda f: f.record("parity", lambda r: r["words"].append("--strict-ep")), True, "evidence"),
    "a record of another model": (
        lambda f: f.record("parity", lambda r: r.update(model="sha256:" + "0" * 64)), True, "evidence",
    ),
    "evidence of another environment": (
        lambda f: f.record("parity", lambda r: r["environment"].update(numpy="1.0")), True, "evidence",
    ),
    "evidence made afterwards": (
        lambda f: f.claim(lambda c: c.update(created="2020-01-01T00:00:00Z")), True, "evidence",
    ),
    "commands out of order": (lambda f: f.claim(lambda c: c["steps"].reverse()), True, "evidence"),
    "a command left out": (_without_parity, True, "complete"),
    "a stale environment": (_stale, True, "environment"),
    "numbers of another environment": (_other_python, True, "environment"),
    "a PASS above a FAIL": (_rung(1, verdict="FAIL"), True, "ladder"),
    "a PASS without evidence": (_rung(3, steps=[]), True, "ladder"),
    "a rung left out": (lambda f: f.claim(lambda c: c["ladder"].pop()), True, "ladder"),
    "a FAIL called PASS": (lambda f: _cosine(f, 0.5), True, "ladder"),
    "a goal that was not reached": (lambda f: f.claim(lambda c: c.update(reached="L1")), True, "ladder"),
    "a level that nothing shows": (lambda f: f.claim(lambda c: c["levels"]["model"].append("A5")), True, "ladder"),
    "a goal too low": (lambda f: f.claim(lambda c: c["tiers"].update(goal="L1")), True, "evidence"),
    "a recipe equal to the default": (lambda f: f.edit("recipe.json", _no_build_part), True, "evidence"),
    "a config equal to the default": (_as_default, True, "recipe"),
    "an effect that is larger": (lambda f: f.claim(lambda c: c["effect"].update(gain_pct=90.0)), True, "recipe"),
    "an effect of another kind": (
        lambda f: f.claim(lambda c: c["effect"].update(kind="builds", gain_pct=None)), True, "recipe",
    ),
    "another recipe's name": (lambda f: f.claim(lambda c: c.update(recipe="other")), True, "recipe"),
    "a recipe with an unknown key": (lambda f: f.edit("recipe.json", lambda r: r.update(extra=1)), True, "evidence"),
    "input specs that no recipe has": (lambda f: f.replace("input-specs.json", b'{"x": {"low": 1}}'), True, "recipe"),
    "an effort that owes a template": (lambda f: f.claim(lambda c: c["tiers"].update(effort="L0")), True, "tiers"),
    "an effort without code": (lambda f: f.claim(lambda c: c["tiers"].update(effort="L1")), True, "tiers"),
    "an outcome without code": (lambda f: f.claim(lambda c: c["tiers"].update(outcome="L2")), True, "tiers"),
    "code beside a recipe": (lambda f: _code(f, "src/winml/modelkit/measuring/judge.py"), True, "scope"),
    "a skill changed along": (lambda f: _code(f, "skills/use-winml-cli/SKILL.md"), True, "scope"),
    "the project's checks changed along": (lambda f: _code(f, "pyproject.toml"), True, "scope"),
    "another answer of the probe": (lambda f: f.claim(lambda c: c["probe"].update(answer="recipe")), True, "probe"),
    "the probe of another model": (
        lambda f: f.result("probe", lambda r: r["model"].update(digest="sha256:0")), True, "probe",
    ),
    "an obstacle that is hidden": (
        lambda f: f.result("probe", lambda r: r["obstacles"][0].update(applies=True)), True, "probe",
    ),
    "a finding about another family": (_finding, True, "findings"),
    "a trigger without a finding": (
        lambda f: f.claim(lambda c: c["methodology"].update(triggers=["silent-failure"])), True, "findings",
    ),
    "a report that says more": (lambda f: f.replace("contribution.md", b"# All is well\n"), False, "report"),
    "a missing report": (lambda f: (f.folder / "contribution.md").unlink(), False, "report"),
}  # fmt: skip
"""What is done, whether all digests are mended afterwards, and the check that catches it."""


def _candidate(change: Callable[[Json], Any]) -> Callable[[Forger], Any]:
    return lambda f: f.result("compare", lambda r: change(r["candidates"][0]))


def _rounds_of(change: Callable[[list[Json]], Any]) -> Callable[[Forger], Any]:
    return _candidate(lambda c: change(c["measurement"]["rounds"]))


def _quicker_rounds(rounds: list[Json]) -> None:
    for taken in (r for r in rounds if r["arm"] == 1):
        taken.update({clock: [ns // 2 for ns in taken[clock]] for clock in ("wall_ns", "cpu_ns")})


def _equal_rounds(rounds: list[Json]) -> None:
    """Both arms take what the quicker one took, but for a nanosecond, so that nothing is copied."""
    for pair in zip(rounds[::2], rounds[1::2], strict=True):
        quick, slow = sorted(pair, key=lambda taken: sum(taken["wall_ns"]))
        slow.update({clock: [ns + 1 for ns in quick[clock]] for clock in ("wall_ns", "cpu_ns")})


def _best_round_again(rounds: list[Json]) -> None:
    for taken in rounds[2:]:
        taken.update({clock: rounds[taken["arm"]][clock] for clock in ("wall_ns", "cpu_ns")})


def _without_compare(forger: Forger) -> None:
    for ending in ("json", "result.json", "log"):
        (forger.folder / f"evidence/compare.{ending}").unlink()
    forger.claim(lambda c: c["steps"].remove("compare"))
    forger.claim(lambda c: c["numbers"].pop("compare"))


def _far_slower(candidate: Json) -> None:
    candidate.update(measurement=None)
    candidate["verdict"].update(interval_pct=None)


def _confirmed_failure(candidate: Json) -> None:
    """Rounds that decide nothing, because what they are said to confirm failed."""
    first = {"verdict": "FAILED", "reason": "it crashed", "seconds": 1.0}
    candidate.update(
        confirmation={"first": first, "verdict": candidate["verdict"], "measurement": None, "calibration": None}
    )


CAUGHT_TIMES: dict[str, tuple[Callable[[Forger], Any], bool, str]] = {
    "an edited gain": (_candidate(lambda c: c["verdict"].update(gain_pct=99.9)), True, "times"),
    "edited rounds": (_rounds_of(_quicker_rounds), True, "numbers"),
    "edited rounds, gain and number": (
        lambda f: _rounds_of(_quicker_rounds)(f) or f.claim(lambda c: c.update(numbers=Dossier(f.folder).numbers)),
        True,
        "times",
    ),
    "a latency effect over a verdict of no gain": (_rounds_of(_equal_rounds), True, "recipe"),
    "one round many times over": (_rounds_of(_best_round_again), True, "evidence"),
    "rounds left out": (_rounds_of(lambda rounds: rounds.__delitem__(slice(2, None))), True, "times"),
    "a round without its other arm": (_rounds_of(lambda rounds: rounds.pop(3)), True, "times"),
    "rounds of few samples": (
        _rounds_of(lambda rounds: [r.update(wall_ns=r["wall_ns"][:2], cpu_ns=r["cpu_ns"][:2]) for r in rounds]),
        True,
        "times",
    ),
    "a kinder protocol": (
        _candidate(lambda c: c["measurement"]["protocol"].update(boundary_p_alone=0.4)), True, "times",
    ),
    "a verdict without rounds": (_candidate(_far_slower), True, "times"),
    "a disturbed machine that decides": (_candidate(lambda c: c["conditions"].update(disturbed=True)), True, "times"),
    "a failure that was confirmed": (_candidate(_confirmed_failure), True, "times"),
    "rounds of another artifact": (_candidate(lambda c: c.update(fingerprint="sha256:" + "0" * 64)), True, "times"),
    "rounds against another default": (
        lambda f: f.result("compare", lambda r: r["base"].update(fingerprint="sha256:" + "0" * 64)), True, "times",
    ),
    "rounds on another target": (_candidate(lambda c: c.update(target="openvino/cpu")), True, "times"),
    "rounds on a simulator": (
        _candidate(lambda c: [arm.update(simulated=True) for arm in c["measurement"]["arms"]]), True, "times",
    ),
    "A/A rounds that nothing asked for": (
        lambda f: f.result("compare", lambda r: r.update(calibrations={"a": {"values": {"cpu": [], "wall": []}}})),
        True,
        "times",
    ),
    "a comparison left out": (_without_compare, True, "complete"),
    "a comparison of another command": (
        lambda f: f.record("compare", lambda r: r["words"].remove("--no-calibration")), True, "evidence",
    ),
    "a larger effect": (lambda f: f.claim(lambda c: c["effect"].update(gain_pct=99.9)), True, "recipe"),
    "time called size": (lambda f: f.claim(lambda c: c["effect"].update(kind="size")), True, "recipe"),
}  # fmt: skip
"""The same for a contribution whose effect is time."""


@pytest.fixture
def forger(contribution: Path, tmp_path: Path) -> Forger:
    return Forger(shutil.copytree(contribution, tmp_path / "forged", symlinks=True))


@pytest.fixture
def racer(quicker: Path, tmp_path: Path) -> Forger:
    return Forger(shutil.copytree(quicker, tmp_path / "forged", symlinks=True))


def _items(folder: Path) -> list[tuple[str, str]]:
    return [(i.check, i.reason) for i in read_against_itself(Dossier(folder), ReviewRequest(str(folder)))]


def test_a_contribution_that_nobody_touched_has_no_item(forger: Forger) -> None:
    assert _items(forger.folder) == []
    forger.mend()
    assert _items(forger.folder) == []


def _caught(forger: Forger, case: tuple[Callable[[Forger], Any], bool, str]) -> None:
    tamper, mended, check = case
    tamper(forger)
    if mended:
        forger.mend()
    assert check in [name for name, _ in _items(forger.folder)]


LINKS = {"a report that leads out of the folder", "a folder that leads out of the folder", "a link out of the folder"}


@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=pytest.mark.symlink) if how in LINKS else how for how in CAUGHT]
)
def test_tampering_is_caught(how: str, forger: Forger) -> None:
    _caught(forger, CAUGHT[how])


@pytest.mark.parametrize("how", CAUGHT_TIMES)
def test_tampering_with_times_is_caught(how: str, racer: Forger) -> None:
    _caught(racer, CAUGHT_TIMES[how])


JUNK = (None, "", "x", True, -1, 0, 10**18, 1e300, [], {}, [[]], {"a": 1})


def _put_junk(value: Any, rng: random.Random) -> None:
    """Something else, or nothing, in one place of a JSON value."""
    while True:
        name = rng.choice([*value] if isinstance(value, dict) else range(len(value)))
        if not value[name] or not isinstance(value[name], dict | list) or rng.random() < 0.2:
            break
        value = value[name]
    if rng.random() < 0.2:
        del value[name]
    else:
        value[name] = rng.choice(JUNK)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_evidence_holds_is_read_or_refused_and_never_a_crash(seed: int, forger: Forger) -> None:
    rng = random.Random(seed)
    names = sorted(p for p in below(forger.folder) if p.endswith(".json") and p != "contribution.json")
    for name in rng.sample(names, 5):
        before = (forger.folder / name).read_bytes()
        forger.edit(name, lambda value: _put_junk(value, rng))
        # A record whose names are junk has none to mend.
        with contextlib.suppress(LookupError, TypeError, AttributeError, OSError):
            forger.mend()
        checklist.run_checks(Dossier(forger.folder))
        forger.replace(name, before)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.update(extra=1), "unknown key `extra`"),
        (lambda c: c["ladder"][0].update(verdict="FINE"), "cannot be 'FINE'"),
        (lambda c: c.pop("effect"), "`effect` is missing"),
        (lambda c: c.update(schema="winml/contribution/2"), "must be 'winml/contribution/1'"),
        (lambda c: c.update(targets=[]), "`targets` must not be empty"),
        (lambda c: c["model"].update(parts=["../../out"]), "`model.parts[0]` must be a plain name"),
        (lambda c: c["metric"].update(file="data/../../secret"), "must be a file in `data`"),
        (lambda c: c["numbers"].update(parity={"cosine": float("nan")}), "NaN is not a JSON number"),
        (lambda c: c.update(numbers={"parity": {"cosine": "1"}}), "must be a number"),
        (lambda c: c.update(created="2026-13-45T99:99:99Z"), "must be a time"),
        (lambda c: c["steps"].append("../../etc/passwd"), "must be the name of a command"),
        (lambda c: c["steps"].append("..\\..\\secret"), "must be the name of a command"),
        (lambda c: c.update(targets=["cpu", "../cpu"]), "`targets[1]` must be a target"),
        (lambda c: c["metric"].update(file="data/.."), "must be a file in `data`"),
        (lambda c: c.update(created="2026-02-30T00:00:00Z"), "must be a time"),
        (lambda c: c["files"].update({"recipe.json": "sha256:0"}), "`files.recipe.json` must be `sha256:`"),
    ],
)
def test_what_is_not_a_contribution_is_a_wrong_request(
    forger: Forger, change: Callable[[Json], Any], told: str
) -> None:
    forger.claim(change)
    with pytest.raises(RequestError, match="not a contribution") as caught:
        review(ReviewRequest(str(forger.folder)), lambda event: None)
    assert told in str(caught.value.message)
    assert isinstance(caught.value.result, NoContribution)
    assert caught.value.result.verdict == "REJECT"


def test_an_empty_folder_is_not_a_contribution(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no `contribution.json`"):
        review(ReviewRequest(str(tmp_path)), lambda event: None)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"\xff\xfe{}", b"[" * 100_000, b'{"schema": 1, "schema": 2}', b'{"ok": Infinity}']
)
def test_whatever_is_called_a_contribution_gets_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "contribution.json").write_bytes(content)
    with pytest.raises(RequestError, match="not a contribution"):
        review(ReviewRequest(str(tmp_path)), lambda event: None)


@pytest.mark.symlink
def test_a_contribution_that_leads_elsewhere_is_none(forger: Forger, tmp_path: Path) -> None:
    (tmp_path / "contribution.json").symlink_to(forger.folder / "contribution.json")
    with pytest.raises(RequestError, match="points outside the folder"):
        review(ReviewRequest(str(tmp_path)), lambda event: None)


def test_a_contribution_that_never_ends_is_none(tmp_path: Path) -> None:
    with (tmp_path / "contribution.json").open("wb") as stream:
        stream.truncate(LARGEST_BYTES + 1)
    with pytest.raises(RequestError, match="larger than any"):
        review(ReviewRequest(str(tmp_path)), lambda event: None)


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_what_is_no_folder_is_no_contribution(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RequestError, match="is not a folder"):
        review(ReviewRequest(str(tmp_path / name)), lambda event: None)


def test_a_review_without_the_model_rejects(forger: Forger, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="REJECT: rerun: the model cannot be read"):
        review(ReviewRequest(str(forger.folder), model=str(tmp_path / "gone.onnx")), lambda event: None)


def _slower_now(result: Json) -> None:
    """Samples ten times faster than they were, with every summary made anew."""
    for taken in result["measurement"]["rounds"]:
        for clock in ("wall_ns", "cpu_ns"):
            taken[clock] = [ns // 10 for ns in taken[clock]]
    result.update(to_json(derive.summarize_perf(read(PerfEvidence, result, strict=False))))


def test_a_forgery_that_agrees_with_itself_is_caught_by_running_it_again(forger: Forger) -> None:
    forger.result("perf-cpu", _slower_now)
    forger.result("perf-cpu", lambda r: r["placement"]["nodes"].update(CPUExecutionProvider=3))
    forger.result("inspect-recipe", lambda r: r.update(fingerprint="sha256:" + "0" * 64))
    forger.replace("inputs/model.npz", (forger.folder / "inputs/model-samples.npz").read_bytes())
    forger.edit("artifacts/recipe/analyze_result.json", lambda r: r["facts"].update(nodes=1))
    forger.replace("artifacts/recipe/extra.bin", b"x")
    forger.record("build-recipe", lambda r: r["writes"].update({"artifacts/recipe/extra.bin": "sha256:" + "0" * 64}))
    dossier = Dossier(forger.folder)
    forger.claim(lambda c: c.update(numbers=dossier.numbers))
    forger.claim(
        lambda c: c["ladder"][1].update(reason=f"model {dossier.numbers['perf-cpu']['latency_p50_ms']:.3f} ms on cpu")
    )
    forger.mend()
    assert _items(forger.folder) == []
    with pytest.raises(CheckFailed) as caught:
        review(ReviewRequest(str(forger.folder), unsandboxed=not sandbox_zoo.available()), lambda event: None)
    found = caught.value.result
    assert isinstance(found, ReviewResult)
    assert found.verdict == "REJECT"
    told = " ".join(item.reason for item in found.items)
    honest = [row.contradictions for row in found.rerun if row.step in ("probe", "build-default", "metric")]
    assert honest == [(), (), ()]
    for what in (
        "another fingerprint",
        "nodes run on",
        "of CPU time",
        "`inputs/model.npz` is not what",
        "different files: artifacts/recipe/extra.bin",
        "analyze_result.json` has different content",
    ):
        assert what in told


def test_a_recipe_that_saves_time_is_approved_after_running_it_again(quicker: Path) -> None:
    claimed = json.loads((quicker / "contribution.json").read_text(encoding="utf-8"))
    assert claimed["effect"]["kind"] == "latency"
    result = review(ReviewRequest(str(quicker), unsandboxed=not sandbox_zoo.available()), lambda event: None)
    assert result.verdict == "APPROVE"
    assert result.sandbox is not None
    assert (result.sandbox.kind in ("bwrap", "unshare")) == sandbox_zoo.available()
    validator("support").validate(to_json(result))
    assert {"build-recipe", "perf-cpu", "compare", "parity", "probe"} <= {row.step for row in result.rerun}


def test_without_a_sandbox_nothing_is_run_again(contribution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise UnavailableError("there is no sandbox on this system")

    monkeypatch.setattr(support_place, "find_sandbox", refuse)
    with pytest.raises(UnavailableError, match="nothing was run again: there is no sandbox") as caught:
        review(ReviewRequest(str(contribution)), lambda event: None)
    assert "--unsandboxed" in str(caught.value.hint)
    found = caught.value.result
    assert isinstance(found, ReviewReading)
    assert (found.rerun, found.sandbox, found.items) == ((), None, ())
    assert "verdict" not in to_json(found)


def test_what_was_run_without_a_sandbox_says_so() -> None:
    place = support_place.find_place(None, unsandboxed=True, known=None)
    assert to_json(place.sandbox_use) == {"kind": "none", "limits": None}
    result = ReviewResult(
        folder="x",
        items=(),
        rerun=(StepAgain(step="probe", exit_code=0, seconds=1.0, contradictions=()),),
        contribution=ReviewedContribution(
            model="m.onnx", digest="", tiers=Tiers(effort="L0", goal="L2", outcome="L0"), reached="L2"
        ),
        scope=ScopeAnswer(asked=False, reason="why", repository=None, base=None, head=None, files=None),
        sandbox=place.sandbox_use,
        verdict="APPROVE",
    )
    assert "1 commands were run again WITHOUT a sandbox" in review_text(result)
    inside = replace(result, sandbox=support_place.SandboxUse(kind="bwrap", limits=None))
    assert "in a sandbox (bwrap)" in review_text(inside)
