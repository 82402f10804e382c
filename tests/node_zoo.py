"""The node tests that ONNX ships for backends, run through `optimize` and `quantize` and judged by their outputs."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from winml.modelkit.building.optimize import command as optimize_app
from winml.modelkit.building.optimize.result import OptimizeReport
from winml.modelkit.building.pipeline import stage
from winml.modelkit.building.quantize import command as quantize_app
from winml.modelkit.building.quantize.result import QuantizeOutcome
from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.errors import ModelkitError, WorkerCrashed
from winml.modelkit.core.events import ignore
from winml.modelkit.worker.client import Worker

MODES = ("optimize", "dynamic", "static", "fp16")
LIMITS = {"optimize": 1e-3, "optimize-all": 1e-3, "dynamic": 0.3, "static": 0.3, "fp16": 0.05}
"""Largest error of an output, relative to its norm, that counts as right. A wrong scale or layout exceeds all."""
LEVELS = ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL")
READABLE_IR = 13
"""The newest that ONNX Runtime reads; onnx writes a newer one around operators that have not changed."""
CONSTANT_IR = 4
"""From here on a constant need not be an input as well."""
BAD = ("wrong", "unrunnable", "traceback")
"""Verdicts that must not occur."""

Outputs = list[Any]


@dataclass(frozen=True)
class Case:
    """A model with inputs and the outputs that ONNX's reference evaluation gives."""

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Any]
    expected: Outputs
    rtol: float
    atol: float


def cases(*modules: str) -> list[Case]:
    """The node tests of some modules of onnx, or of all; each as it is, and with all inputs but the first as constants.

    Constants are what quantizers look for.
    """
    from onnx.backend.test.case import node
    from onnx.backend.test.case.utils import import_recursive

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute infinities on purpose
        if modules:
            for name in modules:
                import_module(f"{node.__name__}.{name}")
        else:
            import_recursive(node)
    # In the order of imports, some of which another test may have done before.
    found = sorted((case for case in node._NodeTestCases if case.data_sets), key=lambda case: case.name)
    return [variant for case in found for variant in _variants(case)]


def _variants(case: Any) -> Iterator[Case]:
    inputs, expected = case.data_sets[0]
    names = [value.name for value in case.model.graph.input]
    feeds = {name: _plain(value) for name, value in zip(names, inputs, strict=False)}
    outputs = [_plain(value) for value in expected]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)  # other tests use it, too
    model.ir_version = min(model.ir_version, READABLE_IR)
    plain = Case(case.name, model, feeds, outputs, case.rtol, case.atol)
    yield plain
    constant = {name: value for name, value in list(feeds.items())[1:] if isinstance(value, np.ndarray)}
    if constant:
        yield _constant(plain, constant)


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _constant(case: Case, constant: Mapping[str, Any]) -> Case:
    """The case with some inputs stored in the model."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = max(model.ir_version, CONSTANT_IR)
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    kept = [value for value in case.model.graph.input if value.name not in constant]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    for name, value in constant.items():
        tensor = numpy_helper.from_array(np.asarray(value), name)
        if tensor.data_type == kinds[name]:
            model.graph.initializer.append(tensor)
        else:
            raw = helper.make_tensor(name, kinds[name], value.shape, value.tobytes(), raw=True)
            model.graph.initializer.append(raw)
    inputs = {name: value for name, value in case.inputs.items() if name not in constant}
    return Case(f"{case.name}.constant", model, inputs, case.expected, case.rtol, case.atol)


R = TypeVar("R")


class WarmWorker:
    """Stands in for `Worker` in the commands: one process serves many of them and is replaced when it dies."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def __call__(self, **values: Any) -> WarmWorker:
        return self

    def __enter__(self) -> WarmWorker:
        return self

    def __exit__(self, *error: object) -> None:
        if self._worker is not None and not self._worker.alive:
            self.close()

    def ask(self, *args: Any, **values: Any) -> Any:
        if self._worker is None:
            self._worker = Worker(preload=tuple(f"winml.modelkit.building.{s}.stage" for s in ("optimize", "quantize")))
        return self._worker.ask(*args, **values)

    def log_tail(self, lines: int = 20) -> list[str]:
        return [] if self._worker is None else self._worker.log_tail(lines)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None


def outputs_of(model: Path, inputs: Mapping[str, Any], level: str = "ORT_ENABLE_ALL") -> Outputs:
    """What ONNX Runtime computes at one of its levels."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = {value.name for value in session.get_inputs()}
    return list(session.run(None, {name: value for name, value in inputs.items() if name in names}))


def reference_outputs(model: Path, inputs: Mapping[str, Any]) -> Outputs:
    """What ONNX's reference evaluator computes, where ONNX Runtime has no kernel."""
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(str(model)).run(None, dict(inputs)))


def agrees(found: Any, expected: Any, *, rtol: float, atol: float) -> bool:
    """Whether two outputs are equal but for rounding, as ONNX's own test runner asks it."""
    if isinstance(expected, list):
        same = isinstance(found, list) and len(found) == len(expected)
        return same and all(agrees(a, b, rtol=rtol, atol=atol) for a, b in zip(found, expected, strict=True))
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray | np.generic):
        return bool(type(found) is type(expected) and found == expected)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if expected.dtype.kind in "fc":
        return bool(np.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True))
    return bool(np.array_equal(found, expected))


def is_near(found: Any, expected: Any, limit: float) -> bool:
    """Whether an output of a changed model is the same but for what smaller numbers lose."""
    if isinstance(expected, list):
        same = isinstance(found, list) and len(found) == len(expected)
        return same and all(is_near(a, b, limit) for a, b in zip(found, expected, strict=True))
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray | np.generic):
        return bool(type(found) is type(expected) and found == expected)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if expected.dtype.kind != "f":
        return bool(np.array_equal(found, expected))
    one, other = expected.astype(np.float64), found.astype(np.float64)
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(other[finite]).all():
        return False
    norm = float(np.linalg.norm(one[finite]))
    return float(np.linalg.norm(one[finite] - other[finite])) <= limit * norm + 1e-5


@dataclass(frozen=True)
class Verdict:
    """What became of a case in one mode."""

    verdict: str
    detail: str = ""
    warned: bool = False
    changed: bool = False
    runtime: bool = False
    """Whether ONNX Runtime computes what is expected from the model as it is."""


Runner = Callable[[Path, Mapping[str, Any]], Outputs]


class Judge:
    """Runs one case after another through the commands, with the files of each in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.worker = WarmWorker()

    def close(self) -> None:
        self.worker.close()

    def judge(self, case: Case, modes: tuple[str, ...] = MODES) -> dict[str, Verdict]:
        """The verdict by mode; one for all when nobody computes what the case expects."""
        source = self._folder / "model.onnx"
        source.write_bytes(case.model.SerializeToString())
        run = self._runner(case, source)
        if run is None:
            return dict.fromkeys(modes, Verdict("not judged", "neither runtime computes the expected outputs"))
        by_runtime = run is outputs_of
        return {mode: replace(self._mode(case, mode, source, run), runtime=by_runtime) for mode in modes}

    def _runner(self, case: Case, source: Path) -> Runner | None:
        """Who computes what the case expects, from the model as it is."""
        for run in (outputs_of, reference_outputs):
            try:
                found = run(source, case.inputs)
            except Exception:  # noqa: BLE001 - a runtime may raise anything on an operator it does not have
                continue
            pairs = zip(found, case.expected, strict=True)
            if all(agrees(one, other, rtol=case.rtol, atol=case.atol) for one, other in pairs):
                return run
        return None

    def _mode(self, case: Case, mode: str, source: Path, run: Runner) -> Verdict:
        output = self._folder / f"{mode}.onnx"
        output.unlink(missing_ok=True)
        try:
            done = self._command(case, mode, source, output)
        except WorkerCrashed as error:
            return Verdict("crashed", error.message)
        except ModelkitError as error:
            return Verdict("refused", error.message)
        except Exception:  # noqa: BLE001 - a traceback of any kind is what is looked for
            return Verdict("traceback", traceback.format_exc()[-1500:])
        warned = [text for text in done.warnings if DOUBTS.search(text)]
        found, detail = self._compare(case, mode, source, output, run)
        if found in BAD and warned:
            found, detail = f"{found}, warned", f"{detail}; {warned[0]}"
        return Verdict(found, detail, bool(warned), done.changed)

    def _command(self, case: Case, mode: str, source: Path, output: Path) -> OptimizeReport | QuantizeOutcome:
        """What the command says of its work."""
        if mode.startswith("optimize"):
            level = "all" if mode.endswith("all") else "basic"
            request = optimize_app.OptimizeRequest(str(source), str(output), level=level, overwrite=True)
            return _with_worker(self.worker, lambda: optimize_app.optimize(request, ignore)).report
        precision = {"static": "int8"}.get(mode, mode)
        data = self._data(case) if mode == "static" else None
        asked = quantize_app.QuantizeRequest(
            str(source), str(output), target="cpu", precision=precision, data=data, overwrite=True, timeout_s=120
        )
        return _with_worker(self.worker, lambda: quantize_app.quantize(asked, ignore)).outcome

    def _data(self, case: Case) -> DataSection:
        """The inputs of the case as calibration data; random ones where a file cannot hold them."""
        usable = all(isinstance(value, np.ndarray) and value.dtype.kind in "fiub" for value in case.inputs.values())
        if not usable or any(
            value.dtype.kind == "f" and not np.isfinite(value).all() for value in case.inputs.values()
        ):
            return DataSection(RANDOM, limit=2)
        path = self._folder / "data.npz"
        np.savez(path, **{name: np.ascontiguousarray(value[None]) for name, value in case.inputs.items()})
        return DataSection(str(path))

    def _compare(self, case: Case, mode: str, source: Path, output: Path, run: Runner) -> tuple[str, str]:
        """`ok`, `wrong` or `unrunnable`, at every level of the runtime at which the source is right."""
        limit = max(LIMITS[mode], case.rtol)
        if run is reference_outputs:
            return _judged(case, limit, "reference", lambda: run(output, case.inputs))
        for level in LEVELS:
            found = _judged(case, limit, level, lambda level=level: outputs_of(output, case.inputs, level))
            if found[0] != "ok":
                alone = _judged(case, limit, level, lambda level=level: outputs_of(source, case.inputs, level))
                if alone[0] == "ok":
                    return found
        return "ok", ""


def _judged(case: Case, limit: float, level: str, run: Callable[[], Outputs]) -> tuple[str, str]:
    try:
        found = run()
    except NotImplementedError as error:
        return "not judged", str(error)[-300:]  # the reference evaluator lacks what only the runtime has
    except Exception as error:  # noqa: BLE001 - whatever a runtime raises
        return "unrunnable", f"{level}: {str(error)[-300:]}"
    if all(is_near(one, other, limit) for one, other in zip(found, case.expected, strict=True)):
        return "ok", ""
    return "wrong", f"{level}: {_shown(found)} instead of {_shown(case.expected)}"


DOUBTS = re.compile(r"\boutputs?\b|calibrated on random")
"""Warnings that make a user look at the outputs."""


def _is_plain(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and bool(np.isfinite(value).all())


def _with_worker(worker: WarmWorker, call: Callable[[], R]) -> R:
    original = stage.Worker
    stage.Worker = worker  # type: ignore[assignment,misc]
    try:
        return call()
    finally:
        stage.Worker = original  # type: ignore[misc]


def _shown(outputs: Outputs) -> str:
    return "; ".join(_shown_one(value) for value in outputs)[:200]


def _shown_one(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {str(value)[:60]}"
    return str(value)[:60]
