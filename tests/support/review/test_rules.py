"""The rules that a producer and a reviewer share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from winml.modelkit.building.export.describe import FolderInspection
from winml.modelkit.building.inspect import Inspection
from winml.modelkit.core.config import InputSection
from winml.modelkit.core.measurement import PairProtocol
from winml.modelkit.core.recipe import BuildPart, ExportPart, Recipe
from winml.modelkit.core.support import GOALS, RungVerdict
from winml.modelkit.core.values import read, to_json
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.graph.description import GraphFacts, MACs, ModelDescription, ModelFile, Quantization
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.support import obstacles as probe
from winml.modelkit.support.probe_result import Attempt
from winml.modelkit.support.review import derive, effect, ladder, scope, times
from winml.modelkit.support.review.evidence import verdict_of
from winml.modelkit.support.review.ladder import Rung, StepVerdict
from winml.modelkit.support.review.plan import Step, Subject, make_plan
from winml.modelkit.support.review.rerun import contradictions
from winml.modelkit.support.review.results import (
    CommandError,
    ComparedBase,
    ComparedCandidate,
    ComparedMeasurement,
    CompareEvidence,
    Conditions,
    Content,
    Failure,
    KeptOutputs,
    MeasuringEnvironment,
    OutputDistance,
    ParityEvidence,
    Result,
    Samples,
)

RECIPE = Recipe(name="toy", build=BuildPart(precision="fp16"))
HERE = MeasuringEnvironment(machine={})
PAIR = Subject(True, ("encoder", "decode"), RECIPE, ("cpu", "qnn/npu"), "L2")


@pytest.mark.parametrize(
    ("code", "error", "verdict"),
    [
        (0, None, "PASS"), (1, "failed", "FAIL"), (5, "check-failed", "FAIL"), (2, "wrong-request", "CLI-BLOCKED"),
        (3, "unavailable", "HOST-BLOCKED"), (70, "bug", "CLI-BLOCKED"), (None, None, "TIMEOUT"),
        (1, "worker-timeout", "TIMEOUT"), (130, "interrupted", "CLI-BLOCKED"),
    ],
)  # fmt: skip
def test_exit_codes_are_verdicts(code: int | None, error: str | None, verdict: str) -> None:
    assert verdict_of(code, error) == verdict


def test_every_part_is_measured_on_every_target_and_compared() -> None:
    ids = [step.id for step in make_plan(PAIR)]
    assert ids[0] == "probe"
    assert {"perf-encoder-cpu", "perf-encoder-qnn_npu", "perf-decode-cpu", "parity-encoder", "export"} <= set(ids)
    assert "metric" not in ids
    assert len(ids) == len(set(ids))


def test_a_plan_ends_at_its_goal_and_names_the_recipe() -> None:
    steps = make_plan(replace(PAIR, goal="L0"))
    assert {step.rung for step in steps} == {None, "L0"}
    built = next(step for step in steps if step.id == "build-recipe")
    assert built.words == (
        "build",
        "-m",
        "{model}",
        "--target",
        "cpu",
        "-p",
        "fp16",
        "-o",
        "artifacts/recipe",
        "--json",
    )


def _steps(*verdicts: tuple[str, str, str, RungVerdict]) -> list[StepVerdict]:
    rows = []
    for rung, purpose, target, verdict in verdicts:
        step = Step(f"{purpose}-{target}", purpose, rung, "model", target, ())  # type: ignore[arg-type]
        rows.append(StepVerdict(step, verdict, "why"))
    return rows


def _verdicts(rungs: tuple[Rung, ...]) -> list[str]:
    return [rung.verdict for rung in rungs]


def test_a_fail_stops_and_a_block_does_not() -> None:
    failed = _steps(("L0", "build", "cpu", "PASS"), ("L1", "perf", "cpu", "FAIL"), ("L2", "parity", "cpu", "PASS"))
    assert _verdicts(ladder.build_ladder(failed, "L2")) == ["PASS", "FAIL", "DEFERRED", "DEFERRED"]
    blocked = _steps(
        ("L0", "build", "cpu", "PASS"), ("L1", "perf", "cpu", "HOST-BLOCKED"), ("L2", "parity", "cpu", "PASS")
    )
    rungs = ladder.build_ladder(blocked, "L2")
    assert _verdicts(rungs) == ["PASS", "HOST-BLOCKED", "PASS", "DEFERRED"]
    assert ladder.find_reached(rungs) == "L2"


def test_one_target_is_enough_to_be_measured() -> None:
    rows = _steps(("L0", "build", "cpu", "PASS"), ("L1", "perf", "cpu", "PASS"), ("L1", "perf", "qnn/npu", "FAIL"))
    rungs = ladder.build_ladder(rows, "L1")
    assert _verdicts(rungs) == ["PASS", "PASS", "DEFERRED", "DEFERRED"]
    assert "perf-qnn/npu: why" in rungs[1].reason


def test_a_pass_above_a_fail_is_wrong() -> None:
    verdicts: tuple[RungVerdict, ...] = ("PASS", "FAIL", "PASS", "DEFERRED")
    rungs = tuple(Rung(name, verdict, "why", ()) for name, verdict in zip(GOALS, verdicts, strict=True))
    assert ladder.find_problems(rungs, "L2") == ["L2 is PASS above the FAIL of L1"]


@pytest.mark.parametrize(
    ("precision", "cosine", "apart", "agrees"),
    [("fp32", 0.99995, 1.0, True), ("fp32", 0.999, 1.0, False), ("fp32", 0.5, 1e-4, False), ("fp16", 0.991, 1.0, True),
     ("w8a16", 0.94, 1.0, False), ("int8", 0.90, 1.0, True)],
)  # fmt: skip
def test_thresholds_go_by_precision(precision: str, cosine: float, apart: float, agrees: bool) -> None:
    assert derive.agrees({"cosine": cosine, "max_abs": apart}, precision) is agrees


def _parity(*, equal: int = 0, incomparable: int = 0) -> ParityEvidence:
    row = OutputDistance(
        output="y", runs=4, equal=equal, incomparable=incomparable, cosine=None, max_abs=None, sqnr_db=None
    )
    return ParityEvidence(
        schema="winml/eval/1",
        distance=(row,),
        outputs=KeptOutputs(file="outputs/model.npz", digest="", arrays={}),
        data=Content(digest=""),
        environment=HERE,
    )


def test_outputs_that_cannot_be_compared_do_not_agree() -> None:
    numbers = derive.numbers(_parity(incomparable=1))
    assert "max_abs" not in numbers
    assert not derive.agrees(numbers, "int8")


def test_outputs_that_are_no_floats_agree_when_they_are_equal() -> None:
    numbers = derive.numbers(_parity(equal=4))
    assert "max_abs" not in numbers
    assert derive.agrees(numbers, "fp32")
    assert not derive.agrees(derive.numbers(_parity(equal=3)), "fp32")


@pytest.mark.parametrize(
    ("effort", "path", "allowed"),
    [
        ("L0", "src/winml/modelkit/building/export/families.py", False),
        ("L1-light", "src/winml/modelkit/building/export/families.py", True),
        ("L1-light", "src/winml/modelkit/building/export/parts.py", False),
        ("L1", "src/winml/modelkit/building/export/parts.py", True),
        ("L1", "src/winml/modelkit/measuring/judge.py", False),
        ("L2", "src/winml/modelkit/measuring/judge.py", True),
        ("L2", "skills/autoconfig/SKILL.md", False),
        ("L2", "pyproject.toml", False),
    ],
)
def test_an_effort_bounds_the_files_that_change(effort: Any, path: str, allowed: bool) -> None:
    assert (scope.outside((path,), effort) == []) is allowed


def _sizes(**by_step: int) -> dict[str, Result | None]:
    facts = GraphFacts(
        nodes=1,
        ops={},
        opsets={},
        ir_version=10,
        producer_name="",
        producer_version="",
        inputs=(),
        outputs=(),
        dynamic_axes={},
        conv_share=None,
        parameters=0,
        initializer_bytes=0,
        file_bytes=None,
        macs=MACs(None, 0, {}),
        quantized=Quantization("none", {}),
        float_types={},
        compiled_for=(),
        contrib_ops=(),
        external_data=False,
    )
    return {
        name.replace("_", "-"): Inspection(
            model="m.onnx",
            description=ModelDescription(
                facts=facts,
                files=(ModelFile(path="m.onnx", bytes=size),),
                fingerprint="sha256:0",
                fingerprint_reason=None,
            ),
        )
        for name, size in by_step.items()
    }


def test_a_difference_that_nothing_measured_is_no_effect() -> None:
    whole = replace(PAIR, parts=())
    exits: dict[str, int | None] = {"build-default": 0, "build-recipe": 0}
    assert effect.find_effect(whole, exits, _sizes(inspect_default=100, inspect_recipe=97)) is None
    found = effect.find_effect(whole, exits, _sizes(inspect_default=100, inspect_recipe=50))
    assert found is not None
    assert (found.kind, found.gain_pct) == ("size", 50.0)
    found = effect.find_effect(whole, {**exits, "build-default": 1}, {})
    assert found is not None
    assert found.kind == "builds"


def _compared(factor: float, *, spread: float = 0.001) -> CompareEvidence:
    """A comparison whose candidate takes `factor` of the base's time, over four rounds that differ a little."""
    rounds = tuple(
        Samples(arm=arm, round=n, process=n, order=arm, load_before=None, load_after=None, wall_ns=ns, cpu_ns=ns)
        for n in range(4)
        for arm in (0, 1)
        for ns in [tuple(round(1e6 * ((factor * (1 + spread * (-1) ** n)) if arm else 1.0)) + i for i in range(12))]
    )
    protocol = PairProtocol(protocol=PROTOCOLS["cpu"], mode="together", metric="cpu", seed=0)
    candidate = ComparedCandidate(
        target="cpu",
        simulated=False,
        fingerprint="sha256:1",
        verdict=Verdict("KEEP", "it says so", seconds=1.0),
        measurement=ComparedMeasurement(arms=(), rounds=rounds, protocol=protocol),
        confirmation=None,
        conditions=Conditions(disturbed=False),
        calibration=None,
        tests=1,
    )
    base = ComparedBase(target="cpu", simulated=False, fingerprint="sha256:0")
    return CompareEvidence(
        schema="winml/compare/1", base=base, candidates=(candidate,), calibrations={}, environment=HERE
    )


@pytest.mark.parametrize(
    ("factor", "spread", "pace"),
    [
        (0.9, 0.001, "faster"),
        (0.985, 0.001, "same"),
        (1.0, 0.001, "same"),
        (1.1, 0.001, "slower"),
        (0.9, 0.3, "unknown"),
    ],
)
def test_a_pace_is_what_the_rounds_give_whatever_the_verdict_says(factor: float, spread: float, pace: str) -> None:
    assert times.pace(_compared(factor, spread=spread)) == pace


def test_time_is_an_effect_when_a_part_takes_less_and_none_takes_more() -> None:
    exits: dict[str, int | None] = {"build-default": 0, "build-recipe": 0, "input-encoder": 0, "input-decode": 0}
    sizes = _sizes(**{f"inspect_{b}_{p}": 100 for b in ("default", "recipe") for p in PAIR.parts})

    def found(encoder: Result | None, decode: Result | None) -> effect.Effect | None:
        return effect.find_effect(PAIR, exits, {**sizes, "compare-encoder": encoder, "compare-decode": decode})

    gained = found(_compared(0.8), _compared(1.0))
    assert gained is not None
    assert (gained.kind, round(gained.gain_pct or 0)) == ("latency", 20)
    assert "no other part takes more" in gained.because
    assert found(_compared(0.8), _compared(1.1)) is None
    assert found(_compared(0.8), None) is None, "a part that was not compared might take more"
    assert found(_compared(0.8), Failure(error=CommandError(message="why"))) is None
    assert found(_compared(1.0), _compared(1.0)) is None


def test_times_are_compared_only_where_nothing_else_shows_an_effect() -> None:
    whole = replace(PAIR, parts=())
    step = next(step for step in make_plan(whole) if step.purpose == "compare")
    exits: dict[str, int | None] = {"build-default": 0, "build-recipe": 0, "input": 0}
    same = _sizes(inspect_default=100, inspect_recipe=100)
    assert effect.needs_compare(step, whole, exits, same)
    assert not effect.needs_compare(step, whole, exits, _sizes(inspect_default=100, inspect_recipe=50))
    assert not effect.needs_compare(step, whole, {**exits, "build-default": 1}, same)
    assert not effect.needs_compare(step, whole, {**exits, "input": 1}, same)


def test_a_gain_that_does_not_show_again_contradicts_the_claim() -> None:
    def told(claimed: float, now: float) -> list[str]:
        return list(contradictions(_compared(claimed), _compared(now), same_machine=True))

    assert told(0.9, 0.89) == []
    assert "`faster` was claimed" in told(0.9, 1.0)[0]
    assert "`same` was claimed" in told(1.0, 1.1)[0]
    assert "not 90.0 %" in told(0.1, 0.9)[0]


FOLDER = FolderInspection(
    model="m",
    model_type=None,
    architecture=None,
    remote_code=(),
    parameters=None,
    weight_types={},
    weight_bytes=9,
    files=("model.safetensors",),
    proven=False,
    task="text-classification",
    inputs=(),
)


def _seen(verdict: RungVerdict, described: FolderInspection = FOLDER, **values: Any) -> probe.ProbeFacts:
    build = Attempt("build default", verdict, None if verdict == "PASS" else "why", None, False, {})
    return probe.ProbeFacts(described, build, **values)


def test_a_probe_ends_with_an_honest_sentence() -> None:
    ran = Attempt("run", "PASS", None, "cpu", False, {})
    assert probe.find_answer(_seen("PASS", runs=[ran]))[0] == "nothing"
    assert probe.find_answer(_seen("PASS", runs=[replace(ran, verdict="FAIL", message="why")]))[0] == "blocked"
    assert probe.find_answer(_seen("HOST-BLOCKED")) == ("blocked", "blocked because why")
    assert probe.find_answer(_seen("FAIL"))[0] == "code"
    unknown = replace(FOLDER, inputs=None, reason="architecture `vilt` is not supported")
    assert probe.find_answer(_seen("CLI-BLOCKED", described=unknown))[0] == "code"
    found = probe.Help("fixed-shapes", "it builds only with every size fixed", ExportPart(dynamic_axes=()))
    assert probe.find_answer(_seen("FAIL", helped=found))[0] == "recipe"


def test_an_obstacle_nobody_could_look_at_is_unknown() -> None:
    unknown = replace(FOLDER, task=None, inputs=None, weight_bytes=None)
    applies = {o.name: o.applies for o in probe.list_obstacles(_seen("CLI-BLOCKED", described=unknown))}
    assert applies.pop("unknown-inputs") is True
    assert set(applies.values()) == {None}


def test_the_end_token_is_tried_for_texts_that_have_one() -> None:
    described = replace(FOLDER, inputs=(InputSection(name="input_ids", shape=("batch", "sequence")),))
    names = [found.name for found in probe.list_helps(described, {"eos_token_id": 2})]
    assert names == ["end-token", "fixed-shapes", "legacy-exporter"]
    assert [found.name for found in probe.list_helps(FOLDER, {})] == ["fixed-shapes", "legacy-exporter"]


def test_a_recipe_is_read_strictly_and_becomes_options() -> None:
    value = {
        "schema": "winml/recipe/1",
        "name": "toy",
        "export": {"shapes": {"batch": [1]}, "dynamic_axes": [], "input_specs": {"input_ids": {"low": 2, "high": 3}}},
        "build": {"precision": "dynamic", "dims": {"n": 4}},
        "inputs": {"int_ranges": {"*": [2, 3]}},
    }
    recipe = read(Recipe, value)
    words = recipe.export.words("specs.json")
    assert words == ["--shape", "batch=1", "--dynamic-axes", "none", "--input-specs", "specs.json"]
    assert recipe.build.words() == ["-p", "dynamic", "--dim", "n=4"]
    assert recipe.inputs.words() == ["--int-range", "2:3"]
    assert read(Recipe, to_json(recipe)) == recipe
    assert Recipe(name="toy").changes_nothing
