"""Functions of the API for real, on small models: what they take, what they return, how they fail."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from pages import read_page
from program import valid_value, winml
from test_documentation import at_batch

import model_zoo
import winml.modelkit as wk
from ctrl_c import press_ctrl_c, start
from decoder_zoo import decoder_folder
from winml.modelkit.api.rows import rows_of
from winml.modelkit.core.errors import ModelFileError, RequestError, UnavailableError, WorkerCrashed

ROOT = Path(__file__).parents[2]
QUICK: dict[str, Any] = {"target": "cpu", "iterations": 2, "warmup": 0, "sessions": 1}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINML_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def digits() -> dict[str, Any]:
    """A few labelled images."""
    with np.load(wk.sample.TEST) as stored:
        return {"image": stored["image"][:16], "label": stored["label"][:16]}


@pytest.fixture(scope="module")
def int8(digits: dict[str, Any]) -> wk.BuildResult:
    """The sample in memory, quantized with arrays, in the cache."""
    events: list[wk.Event] = []
    model = onnx.load(wk.sample.MODEL)
    built = wk.build(
        model, target="cpu", precision="int8", calibration={"image": digits["image"]}, on_event=events.append
    )
    assert {"TargetChosen", "StageStarted", "StageDone"} <= {type(event).__name__ for event in events}
    return built


def _marks(block: str) -> list[pytest.MarkDecorator]:
    if "wk.export" in block:
        return [pytest.mark.hf, pytest.mark.slow]
    return [pytest.mark.qnn] if "qnn" in block else []


def _examples() -> list[Any]:
    """The blocks of the page that README does not have: those are run as programs by `test_documentation.py`."""
    own, others = (read_page(ROOT / name).texts("python") for name in ("docs/api.md", "README.md"))
    assert own[0] in others
    words = [re.search(r"wk\.(\w+)\(", block) for block in own]
    return [
        pytest.param(block, marks=_marks(block), id=word[1] if word else "none")
        for block, word in zip(own, words, strict=True)
        if block not in others
    ]


def test_the_docs_have_an_example_of_every_function() -> None:
    shown = {name for param in _examples() for name in re.findall(r"wk\.(\w+)\(", param.values[0])}
    functions = {name for name in wk.__all__ if inspect.isfunction(getattr(wk, name))}
    assert functions - shown == {"compile_multiple_onnx"}, "which is in compile.md"


@pytest.mark.parametrize("block", _examples())
def test_an_example_of_the_docs_works(
    block: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "other.onnx"):
        shutil.copy(wk.sample.MODEL, name)
    at_batch(1, Path("small.onnx"))
    space = {"schema": "winml/space/1", "knobs": {"quantize.scheme": ["fp16"]}}
    Path("space.json").write_text(json.dumps(space), encoding="utf-8")
    if "my-bert" in block:
        shutil.copytree(request.getfixturevalue("hf_folders") / "bert", "my-bert")
    if "my-decoder" in block:
        decoder_folder(Path("my-decoder"))
    exec(compile(block, "docs/api.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


def test_a_build_without_an_output_is_kept_in_the_cache(int8: wk.BuildResult) -> None:
    assert Path(int8.folder).is_relative_to(os.environ["WINML_CACHE"])
    assert int8.precision == "int8"
    assert int8.proof.status == "proven on target"
    assert [row["stage"] for row in rows_of(int8) or []] == ["optimize", "quantize"]


def test_what_a_call_wrote_for_itself_is_gone(int8: wk.BuildResult) -> None:
    """The model in memory and the arrays of the build were files for as long as it took."""
    config = json.loads((Path(int8.folder) / "build_config.json").read_text(encoding="utf-8"))
    assert Path(config["model"]).name == "model.onnx"
    assert not Path(config["model"]).parent.exists()
    assert not Path(config["quantize"]["calibration"]["source"]).exists()


def test_calibration_takes_one_mapping_per_sample(digits: dict[str, Any], tmp_path: Path) -> None:
    feeds = [{"image": image[np.newaxis]} for image in digits["image"]]
    result = wk.quantize(wk.sample.MODEL, output=tmp_path / "q.onnx", precision="int8", calibration=feeds, samples=8)
    assert result.outcome.calibration is not None
    assert result.outcome.calibration.samples == 8
    assert (tmp_path / "q.onnx").is_file()


def test_a_check_raises_only_when_it_is_asked_for(int8: wk.BuildResult, digits: dict[str, Any]) -> None:
    wrong = {**digits, "label": (digits["label"] + 1) % 10}
    asked: dict[str, Any] = {"data": wrong, "task": "image-classification", "judge": "value"}
    assert wk.evaluate(int8.folder, **asked).metrics["accuracy"].value == 0
    with pytest.raises(wk.CheckFailed, match="accuracy is 0") as caught:
        wk.evaluate(int8.folder, **asked, min_metric=0.5)
    assert caught.value.exit_code == 5
    assert isinstance(caught.value.result, wk.EvalResult)
    rows = rows_of(caught.value.result) or []
    assert [(row["metric"], row["samples"]) for row in rows] == [("accuracy", 16), ("top5_accuracy", 16)]


def test_analyze_raises_for_an_unsupported_model_only_when_asked(zoo: Path) -> None:
    asked: dict[str, Any] = {"target": "vitisai/npu", "fusions": False}
    result = wk.analyze(zoo / "relu.onnx", **asked)
    assert result.supported is False
    with pytest.raises(UnavailableError, match="cannot tell"):
        wk.analyze(zoo / "relu.onnx", **asked, fail_if_unsupported=True)


def test_compare_takes_models_in_memory() -> None:
    result = wk.compare(
        model_zoo.conv_net(), model_zoo.conv_net(fused=True), target="cpu", max_seconds=1, calibrate=False,
        raise_priority=False,
    )  # fmt: skip
    assert result.base.label == "model.onnx"
    (row,) = rows_of(result) or []
    assert (row["candidate"], row["verdict"]) == ("model2.onnx", result.candidates[0].verdict.verdict)


def test_export_refuses_a_model_that_is_onnx_already(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="ONNX already"):
        wk.export(zoo / "relu.onnx", output=tmp_path / "out")


def test_a_result_has_the_json_and_the_text_of_the_command(zoo: Path) -> None:
    result = wk.inspect(zoo / "conv.onnx")
    done = winml("inspect", "-m", zoo / "conv.onnx", "--json")
    assert json.loads(json.dumps(result.to_json())) == json.loads(done.stdout)
    valid_value(result.to_json())
    assert str(result) == winml("inspect", "-m", zoo / "conv.onnx").stdout.rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 5}, "`model` must be a path but is of type `int`"),
        ({"model": ""}, "`model` is empty"),
        ({"iterations": 0}, "`iterations` must be at least 1 but got 0"),
        ({"timeout": 0}, "`timeout` must be greater than 0 but got 0"),
        ({"op_tracing": "basics"}, "`op_tracing` cannot be `basics`"),
        ({"dims": {"limit": 0}}, "`limit` must be at least 1 but got 0"),
        ({"shapes": {"x": (0, 4)}}, r"`x\[0\]` must be at least 1 but got 0"),
        ({"int_ranges": {"x": (3, 2)}}, "the range of `x` is empty"),
        ({"inputs": {"x": [1.0]}, "dims": {"n": 1}}, "`inputs` cannot be combined with `dims`"),
        ({"inputs": {"x": np.array([object()])}}, "array `x` holds Python objects"),
        ({"target": "cpuu"}, "unknown execution provider `cpuu`"),
        ({"baseline": "trace.json"}, "`--baseline` compares traces"),
    ],
)
def test_a_wrong_argument_is_named(zoo: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        wk.perf(**{"model": zoo / "relu.onnx", **arguments})
    assert (caught.value.code in ("wrong-request", "invalid-data"), caught.value.exit_code) == (True, 2)


def test_options_of_data_need_data(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="`samples` needs `data`"):
        wk.evaluate(zoo / "relu.onnx", samples=5)
    with pytest.raises(RequestError, match="`columns` needs `calibration`"):
        wk.quantize(zoo / "relu.onnx", output=tmp_path / "q.onnx", columns={"text": "sentence"})


def test_samples_of_one_input_have_one_shape(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="different shapes"):
        wk.quantize(zoo / "relu.onnx", output=tmp_path / "q.onnx", calibration=[{"x": [1.0]}, {"x": [1.0, 2.0]}])


def test_a_section_names_the_nearest_key(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="per_chanel") as caught:
        wk.quantize(zoo / "relu.onnx", output=tmp_path / "q.onnx", section={"per_chanel": True})
    assert "per_channel" in str(caught.value.hint)


def test_a_model_in_memory_needs_its_weights(tmp_path: Path) -> None:
    path = tmp_path / "outside.onnx"
    onnx.save(model_zoo.conv_net(), path, save_as_external_data=True, size_threshold=0)
    with pytest.raises(RequestError, match="names files that hold its weights"):
        wk.inspect(onnx.load(path, load_external_data=False))


def test_an_output_is_not_replaced_without_being_asked(zoo: Path, tmp_path: Path) -> None:
    (tmp_path / "there.onnx").write_bytes(b"mine")
    with pytest.raises(RequestError, match="exists"):
        wk.optimize(zoo / "relu.onnx", output=tmp_path / "there.onnx")
    assert (tmp_path / "there.onnx").read_bytes() == b"mine"


def test_a_model_that_crashes_is_an_error_with_its_hint_in_the_traceback(zoo: Path) -> None:
    with pytest.raises(WorkerCrashed) as caught:
        wk.perf(zoo / "fpe.onnx", **QUICK)
    assert caught.value.exit_code == 1
    assert caught.value.__notes__ == [f"hint: {caught.value.hint}"]


def test_a_message_has_no_control_characters_for_a_terminal() -> None:
    with pytest.raises(ModelFileError) as caught:
        wk.perf("no\x1b[31m.onnx")
    assert "\x1b" not in str(caught.value)


def test_an_error_of_on_event_comes_through_and_leaves_no_process(zoo: Path) -> None:
    def refuse(event: wk.Event) -> None:
        raise LookupError(type(event).__name__)

    with pytest.raises(LookupError, match="PerfStarted"):
        wk.perf(zoo / "relu.onnx", **QUICK, on_event=refuse)
    assert not _workers(os.getpid())


def test_calls_work_inside_an_event_loop_and_in_threads(zoo: Path) -> None:
    async def measure() -> list[wk.PerfResult]:
        here = wk.perf(zoo / "relu.onnx", **QUICK)
        return [here, await asyncio.to_thread(wk.perf, zoo / "relu.onnx", **QUICK)]

    assert [len(result.measurement.rounds) for result in asyncio.run(measure())] == [1, 1]


_INTERRUPTED = """
import sys
import winml.modelkit as wk

def tell(event):
    if type(event).__name__ == "RunsDone":
        print("running", flush=True)

try:
    wk.perf(wk.sample.MODEL, target="cpu", duration=100, sessions=1, on_event=tell)
except wk.ModelkitError:
    print("swallowed")
except KeyboardInterrupt as error:
    print("interrupted", len(error.__cause__.result.measurement.rounds), flush=True)
    sys.stdin.read()
"""


def test_ctrl_c_is_a_keyboard_interrupt_and_leaves_no_process() -> None:
    with start([sys.executable, "-c", _INTERRUPTED], stdin=-1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        assert _workers(process.pid)
        press_ctrl_c(process)
        lines = iter(process.stdout.readline, "")
        assert next(line for line in lines if line != "running\n") == "interrupted 1\n"
        assert not _workers(process.pid)
        process.communicate("", timeout=60)


def _workers(pid: int) -> list[int]:
    """Workers of a process that run."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        # One that has just ended has no command line; Wine says so by an error that psutil does not know.
        with contextlib.suppress(psutil.Error, OSError):
            if "program.py" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found
