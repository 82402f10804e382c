"""Metrics of the user's own: a Python function that scores one sample, in a file or given by a Python caller.

The function runs in the process of the command, on outputs that the worker wrote: there it can be any function, also
one of a notebook, and it finds the packages of the user, which the environment of an execution provider may lack.

Code comes from the command line or the API only: no config, build folder or model can name a function.
"""

from __future__ import annotations

import inspect
import math
import numbers
import sys
import traceback
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, ModelkitError, RequestError, UnavailableError
from winml.modelkit.core.metric_source import MetricSource
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.evaluation.corpus import Records
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.report import RunReport
from winml.modelkit.store import digest

if TYPE_CHECKING:
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.data.samples import Sample

FILE = ".py:"
"""What tells `FILE.py:NAME` from the name of a metric."""
PREDICTION = "prediction"
"""The key of what the model predicted, beside the scores of a sample."""
RECORDS = "records"
EXAMPLE = "my_metric.py:score"
_CONTRACT = "it gets (outputs, sample) and returns a number or a dict of numbers; see docs/evaluate.md"


@dataclass(frozen=True)
class CustomMetric:
    """A function of the user's, and what it says about itself by its attributes."""

    function: Callable[..., Any]
    name: str
    source: MetricSource
    lower: bool | frozenset[str] = False
    """Whether less is better, for all its numbers or for those with these names."""
    total: Callable[..., Any] | None = None
    """Makes one number, or several, of what the function noted about all samples."""
    bounds: tuple[float, float] | None = None
    """Between which every number of `total` lies."""

    def is_lower(self, name: str) -> bool:
        return self.lower if isinstance(self.lower, bool) else name in self.lower

    @property
    def place(self) -> str:
        """The function, its file and its line."""
        return _place(self.function, self.source)


def names_file(text: str) -> bool:
    """Whether a value of `--metric` is a function in a file and not the name of a metric."""
    return FILE in text or text.endswith(".py")


def load_metric(text: str) -> CustomMetric:
    """The function that `FILE.py:NAME` means; the file is run as a module."""
    stem, found, name = text.rpartition(FILE)
    if not found or not stem or not name:
        raise RequestError(f"`{text}` names no function of a file", hint=f"write it as `--metric {EXAMPLE}`")
    path = Path(f"{stem}.py")
    if not path.is_file():
        raise RequestError(f"metric file not found: `{path}`", hint=near_path(path))
    content = path.read_bytes()
    module = _run_file(path, content)
    function = getattr(module, name, None)
    if function is None:
        known = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        listed = f"its functions: {', '.join(known)}" if known else f"define one: {_CONTRACT}"
        raise RequestError(f"`{path}` has no function `{name}`", hint=did_you_mean(name, known) if known else listed)
    return make_metric(function, MetricSource(function=name, file=str(path), digest=digest.of_bytes(content)))


def _run_file(path: Path, content: bytes) -> types.ModuleType:
    """The module of a file; a module beside it can be imported, and replaces no installed one."""
    module = types.ModuleType(f"winml_metric_{path.stem}")
    module.__file__ = str(path.absolute())
    # A class that pickle or dataclasses look up needs its module.
    sys.modules[module.__name__] = module
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        exec(compile(content, module.__file__, "exec"), module.__dict__)  # noqa: S102 - the user typed its name
    except SyntaxError as error:
        raise RequestError(f"`{path}`, line {error.lineno}, is not Python: {error.msg}") from error
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"`{path}` imports `{error.name}`, which is not installed", hint=f"install it for {sys.executable}"
        ) from error
    except (Exception, SystemExit) as error:
        raise RequestError(f"`{path}`{_line_of(error, module.__file__)} raised {_describe_error(error)}") from error
    return module


def make_metric(function: object, source: MetricSource | None = None) -> CustomMetric:
    """A function with its attributes: `name`, `lower_is_better`, `total` and `bounds`."""
    if not callable(function):
        raise RequestError(
            f"a metric must be a function but is of type `{type(function).__name__}`", hint=f"a metric: {_CONTRACT}"
        )
    known = source or _find_source(function)
    name = getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__)
    if not isinstance(name, str):
        raise RequestError(f"`name` of {_place(function, known)} must be text but is {name!r:.80}")
    lower = getattr(function, "lower_is_better", False)
    if isinstance(lower, Collection) and not isinstance(lower, str) and all(isinstance(one, str) for one in lower):
        lower = frozenset(lower)
    elif not isinstance(lower, bool):
        raise RequestError(
            f"`lower_is_better` of {_place(function, known)} must be True, False or names of numbers but is "
            f"{lower!r:.80}"
        )
    total = getattr(function, "total", None)
    if total is not None and not callable(total):
        raise RequestError(f"`total` of {_place(function, known)} must be a function but is {total!r:.80}")
    bounds = _read_bounds(getattr(function, "bounds", None), function, known)
    return CustomMetric(function, "custom" if name == "<lambda>" else name, known, lower, total, bounds)


def _read_bounds(given: Any, function: Callable[..., Any], source: MetricSource) -> tuple[float, float] | None:
    if given is None:
        return None
    known = isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(n, int | float) for n in given)
    if not known or not (math.isfinite(given[1] - given[0]) and given[0] < given[1]):
        raise RequestError(
            f"`bounds` of {_place(function, source)} must be the lowest and the highest value but is {given!r:.80}"
        )
    return float(given[0]), float(given[1])


def _find_source(function: Callable[..., Any]) -> MetricSource:
    """The file of a function that a Python caller gave, or the text of one that no file holds."""
    name = getattr(function, "__qualname__", type(function).__name__)
    try:
        path = Path(inspect.getsourcefile(function) or "")
        text = inspect.getsource(function)
    except (TypeError, OSError):
        return MetricSource(function=name, file=None, digest=None)
    if path.is_file():
        return MetricSource(function=name, file=str(path), digest=digest.of_file(path))
    return MetricSource(function=name, file=None, digest=digest.of_bytes(text.encode("utf-8")))


def score_outputs(
    metric: CustomMetric, report: RunReport, saved: Path, section: DataSection, folder: Path
) -> RunReport:
    """The report of a run with the scores of the user's function for every sample whose outputs were written."""
    made: list[Any] = []
    predictions: list[Any] = []
    for sample, outputs in _outputs_of_samples(report, saved, section, folder):
        value = _call(metric, metric.function, (outputs, sample), sample.where)
        predictions.append(_take_prediction(metric, value, sample.where))
        made.append(value if metric.total else _read_scores(metric, value, f"for {sample.where}", made))
    if metric.total is not None:
        records = Records(made, lambda kept: _totals(metric, kept))
        names = tuple(_totals(metric, made)) if made else ()
        metrics = tuple(
            Metric(name, "total", RECORDS, lower=metric.is_lower(name), bounds=metric.bounds) for name in names
        )
        series: dict[str, tuple[Any, ...]] = {RECORDS: records}
    else:
        names = tuple(made[0]) if made else ()
        metrics = tuple(Metric(name, "score", name, lower=metric.is_lower(name)) for name in names)
        series = {name: tuple(scores[name] for scores in made) for name in names}
    return replace(
        report,
        metrics=metrics,
        series=series,
        predictions=tuple(predictions),
        agreement=any(one is not None for one in predictions),
        custom=True,
    )


def _outputs_of_samples(
    report: RunReport, saved: Path, section: DataSection, folder: Path
) -> Iterator[tuple[Sample, Any]]:
    """Every sample that was run with its outputs: by name; of several runs a list; of a sequence stacked by step."""
    # Here, because the parent process of an evaluation without a custom metric does without numpy.
    import numpy as np

    from winml.modelkit.evaluation import saved_outputs
    from winml.modelkit.evaluation.all_tasks import choose_task
    from winml.modelkit.evaluation.task_data import open_task_data
    from winml.modelkit.graph.inputs import InputSpec

    task, _ = choose_task(report.task, section, folder)
    specs = [InputSpec(one.name, one.type, one.shape) for one in report.inputs]
    dataset = open_task_data(task, section, specs, folder, custom=True, steps=bool(report.state))
    if dataset.digest != report.data.digest:
        raise DataError(
            f"`{section.source}` changed while it was evaluated",
            hint="evaluate again; nothing may write the data meanwhile",
        )
    rows = saved_outputs.read(saved, len(report.outputs), len(report.predictions))
    for sample, runs in zip(dataset, rows, strict=False):
        named = [dict(zip(report.outputs, run, strict=True)) for run in runs]
        if report.state:
            yield sample, {name: np.stack([run[name] for run in named]) for name in report.outputs}
        else:
            yield sample, named[0] if len(named) == 1 else named


def _call(metric: CustomMetric, function: Callable[..., Any], args: tuple[Any, ...], where: str) -> Any:
    """What the user's function returns; what it raises is an error of its file."""
    try:
        return function(*args)
    except ModelkitError:
        raise
    except (Exception, SystemExit) as error:
        file = inspect.unwrap(function).__code__.co_filename if inspect.isroutine(function) else metric.source.file
        line = _line_of(error, file)
        said = f"`{metric.source.function}`{f' of `{metric.source.file}`' if metric.source.file else ''}{line}"
        raise RequestError(
            f"{said} raised {_describe_error(error)} for {where}",
            hint=f"a metric: {_CONTRACT}" if isinstance(error, TypeError) else None,
        ) from error


def _read_scores(
    metric: CustomMetric, value: Any, where: str, before: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """The numbers that the function returned, by name; the same names for every sample."""
    if isinstance(value, Mapping):
        found = {name: _read_number(metric, one, where, name) for name, one in value.items() if name != PREDICTION}
    else:
        found = {metric.name: _read_number(metric, value, where)}
    if not found or not all(isinstance(name, str) and name for name in found):
        raise RequestError(
            f"{metric.place} returned {_show(value)} {where}, which names no number", hint=f"a metric: {_CONTRACT}"
        )
    if before and found.keys() != before[0].keys():
        raise RequestError(
            f"{metric.place} returned numbers called {', '.join(found)} {where}, and {', '.join(before[0])} for the "
            "samples before",
            hint="return the same names for every sample",
        )
    return found


def _read_number(metric: CustomMetric, value: Any, where: str, name: str | None = None) -> float:
    item = getattr(value, "item", None)
    if getattr(value, "ndim", None) == 0 and item is not None:
        value = item()  # a number of numpy
    what = f" as `{name}`" if name is not None else ""
    if not isinstance(value, numbers.Real):
        raise RequestError(
            f"{metric.place} returned {_show(value)}{what} {where}, not a number", hint=f"a metric: {_CONTRACT}"
        )
    number = float(value)
    if not math.isfinite(number):
        raise RequestError(
            f"{metric.place} returned {number}{what} {where}",
            hint="return the worst score where outputs cannot be judged: a mean with NaN says nothing",
        )
    return number


def _take_prediction(metric: CustomMetric, value: Any, where: str) -> Any:
    """What the model predicted, as JSON holds it; None where the function does not say."""
    if not isinstance(value, Mapping):
        return None
    found: Any = value.get(PREDICTION)
    plain: Any = found.tolist() if hasattr(found, "tolist") else found  # a value of numpy
    if not _is_plain(plain):
        raise RequestError(
            f"{metric.place} returned {_show(found)} as `{PREDICTION}` for {where}",
            hint="a prediction is text, a number, or a list or dict of them",
        )
    return plain


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(one) for one in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _totals(metric: CustomMetric, records: Sequence[Any]) -> dict[str, float | None]:
    """The numbers of the user's `total`; None where these samples do not give one."""
    assert metric.total is not None
    where = f"{len(records)} samples"
    value = _call(metric, metric.total, (list(records),), where)
    named = value if isinstance(value, Mapping) else {metric.name: value}
    if not named or not all(isinstance(name, str) and name for name in named):
        raise RequestError(f"`total` of {metric.place} returned {_show(value)} for {where}, which names no number")
    return {
        name: None if one is None else _read_number(metric, one, f"by its `total` for {where}", name)
        for name, one in named.items()
    }


def _place(function: Callable[..., Any], source: MetricSource) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = f", line {code.co_firstlineno}," if code is not None and source.file else ""
    return f"`{source.function}`{f' of `{source.file}`' if source.file else ''}{line}"


def _line_of(error: BaseException, file: str | None) -> str:
    """Where in the user's file an error came from: the innermost line of it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", line {frames[-1].lineno}," if frames else ""


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _show(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.80}"
