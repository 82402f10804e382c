"""Worker operations: open a model once, answer one input after another."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from winml.modelkit.core import values
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.json_text import JSONError, parse_json
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.tasks import TASKS, find_task
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.evaluation.all_tasks import TASKS as EVALUATED
from winml.modelkit.evaluation.all_tasks import find_own_class
from winml.modelkit.evaluation.labels import CONFIG
from winml.modelkit.evaluation.task import Outputs, Setting
from winml.modelkit.graph.inputs import Arrays, InputRequest, InputSpec, fitting, synthetic
from winml.modelkit.graph.npz import write_arrays
from winml.modelkit.serving.decoding import Decoding, decode, describe_outputs
from winml.modelkit.serving.generating import Decoder, Pair, open_text_model
from winml.modelkit.serving.prediction import (
    GenerateArguments,
    GeneratedText,
    Given,
    OpenArguments,
    OpenedModel,
    PredictArguments,
    Prediction,
    RunAnswer,
    RunArguments,
    TensorFacts,
    TextPiece,
)
from winml.modelkit.serving.preparing import Prepared, Preparer
from winml.modelkit.session import environment
from winml.modelkit.session.measure import Context
from winml.modelkit.session.notes import dims_notes, fallback_notes, saturation_notes, simulator_notes
from winml.modelkit.session.opening import prepare_arm
from winml.modelkit.session.output_arrays import as_array
from winml.modelkit.session.saturation import weights_at_risk
from winml.modelkit.session.session import WinMLSession

_MOST_VALUES = 2**22
"""Numbers of an answer in JSON, which takes twenty times their memory."""
_OPTIONS = ("threshold", "chat", "stop")


class Answerer(Protocol):
    """A model that is open."""

    def describe(self) -> OpenedModel: ...

    def answer(self, given: Given, context: Context) -> Prediction: ...


class Predictor:
    """A model that is run once for an answer, or a few times for long texts."""

    def __init__(self, asked: OpenArguments, stack: ExitStack, first: Given | None = None) -> None:
        """Open the model. `first` is what it will be asked, whose sizes decide dimensions that an NPU needs fixed."""
        self._asked = asked
        folder = Path(asked.folder)
        self.task, self._notes = choose_task(asked.task, folder)
        self._preparer = Preparer(folder, self.task, length=asked.length)
        self._first: Prepared | None = None

        def make_values(specs: Sequence[InputSpec]) -> Arrays:
            if first is None:
                return synthetic(specs, InputRequest(dims=dict(asked.dims)))
            self._first = self._preparer.prepare(first, specs)
            return self._first.sample.inputs

        self.session: WinMLSession = prepare_arm(asked.arm, make_values).session
        stack.callback(self.session.close)
        self.session.compile()
        self._specs = self.session.inputs
        names = tuple(output.name for output in self.session.outputs)
        self._decoding = Decoding(Setting(names, folder, asked.output, asked.task_options), asked.top)
        if asked.output is not None:
            self._decoding.pick()

    def describe(self) -> OpenedModel:
        session = self.session
        return OpenedModel(
            task=self.task,
            inputs=tuple(TensorFacts(name=i.name, type=i.type, shape=i.shape) for i in session.inputs),
            outputs=tuple(TensorFacts(name=o.name, type=o.type, shape=o.shape) for o in session.outputs),
            placement=session.placement,
            provider_options=session.provider_options,
            environment=environment.environment(session.target.ep, distribution_version(session.package)),
            runtime=None,
            notes=(
                *self._notes,
                *dims_notes(session.target, session.section.fixed_dims),
                *(simulator_notes(session.added_options) if session.target.simulated else ()),
            ),
            warnings=(
                *fallback_notes(session.target, session.placement),
                *saturation_notes(weights_at_risk(session.path, session.target)),
            ),
        )

    def answer(self, given: Given, context: Context) -> Prediction:
        prepared = self._first or self._preparer.prepare(given, self._specs)
        self._first = None
        return self.predict(prepared)[0]

    def prepare(self, given: Given) -> Prepared:
        return self._preparer.prepare(given, self._specs)

    def prepare_arrays(self, arrays: Mapping[str, Any]) -> Prepared:
        """Ready inputs, as JSON has them."""
        named = {spec.name: spec for spec in self._specs}
        unknown = next((name for name in arrays if name not in named), None)
        if unknown is not None:
            raise DataError(f"the model has no input `{unknown}`", hint=did_you_mean(unknown, named))
        made = {name: _read_array(value, named[name]) for name, value in arrays.items()}
        from winml.modelkit.data.samples import Sample

        return Prepared(Sample(fitting(made, self._specs, source="the request"), where="the request"), ready=True)

    def predict(self, prepared: Prepared) -> tuple[Prediction, Outputs]:
        """The answer, and the outputs of its first run."""
        sample = prepared.sample
        runs = [self.session.run(inputs) for inputs in (sample.inputs, *sample.more)]
        answer = decode(self._decoding, self.task, prepared, runs)
        more = () if len(runs) == 1 else (f"the model was run {len(runs)} times; the outputs are those of the first",)
        prediction = Prediction(answer=answer, outputs=describe_outputs(runs[0]), notes=(*prepared.notes, *more))
        return prediction, runs[0]


class TextModel:
    """A model that generates text."""

    def __init__(self, asked: OpenArguments, stack: ExitStack, first: Given | None = None) -> None:
        self._asked = asked
        self.model: Decoder | Pair = open_text_model(asked, stack)

    def describe(self) -> OpenedModel:
        model, target = self.model, self._asked.arm.target
        session = next(iter(model.sessions.values()), None)
        version = None if session is None else distribution_version(session.package)
        own = "text-generation" if isinstance(model, Decoder) else "text2text-generation"
        return OpenedModel(
            task=self._asked.task or own,
            inputs=(),
            outputs=(),
            placement=None if session is None else session.placement,
            provider_options={} if session is None else session.provider_options,
            environment=environment.environment(target.ep, version),
            runtime=model.facts,
            notes=(
                *model.notes,
                *(simulator_notes(session.added_options) if session is not None and target.simulated else ()),
            ),
            warnings=tuple(
                note for one in model.sessions.values() for note in fallback_notes(one.target, one.placement)
            ),
        )

    def answer(self, given: Given, context: Context) -> Prediction:
        def tell(text: str, tokens: int) -> None:
            context.tell(TextPiece(text=text, tokens=tokens))

        return Prediction(answer=self.model.ask(given, tell, context.stop), outputs=())


def choose_task(name: str | None, folder: Path) -> tuple[str | None, tuple[str, ...]]:
    """The task that was named, or the one of the class that config.json names; None where there is neither."""
    if name is not None:
        known = (*EVALUATED, *(other for other in TASKS if other not in EVALUATED))
        if name not in known:
            raise RequestError(f"unknown task `{name}`", hint=did_you_mean(name, known))
        return name, ()
    own = find_own_class(folder)
    if own is None:
        return None, ()
    task = find_task(own)
    return task, (f"task `{task}`, because {CONFIG} names `{own}`; `--task` names another",)


def _open(asked: OpenArguments, stack: ExitStack, first: Given | None = None) -> Predictor | TextModel:
    for name in asked.task_options:
        if name not in _OPTIONS:
            raise RequestError(f"there is no option `{name}`", hint=did_you_mean(name, _OPTIONS))
    kind = TextModel if asked.generates else Predictor
    return kind(asked, stack, first)


def run(args: dict[str, Any], context: object) -> RunAnswer:
    """Open a model and answer one input."""
    asked = values.read(RunArguments, args)
    with ExitStack() as stack:
        model = _open(asked.opening, stack, asked.given)
        prediction = model.answer(asked.given, cast("Context", context))
        return RunAnswer(opened=model.describe(), prediction=prediction)


_opened: list[Predictor | TextModel] = []
"""The model of this process, which `open_model` opened: it stays until the process ends."""


def open_model(args: dict[str, Any], context: object) -> OpenedModel:
    """Open the model that this process answers with."""
    model = _open(values.read(OpenArguments, args), ExitStack())
    _opened[:] = [model]
    return model.describe()


def predict(args: dict[str, Any], context: object) -> dict[str, Any]:
    """The answer to the body of a request, as the text of a JSON object, so that it is written once."""
    asked, model = values.read(PredictArguments, args), _opened[0]
    if isinstance(model, TextModel):
        given, _ = _read_given(asked)
        return {"body": _write(model.answer(given, cast("Context", context)))}
    prepared, ready = _prepare(model, asked)
    prediction, outputs = model.predict(prepared)
    if asked.archive is not None:
        write_arrays(Path(asked.archive), {name: _storable(as_array(value)) for name, value in outputs.items()})
        return {"body": ""}
    if ready if asked.values is None else asked.values:
        prediction = replace(prediction, values=_list_values(outputs))
    return {"body": _write(prediction)}


def _write(prediction: Prediction) -> str:
    return json.dumps(values.to_json(prediction), separators=(",", ":"), allow_nan=False)


def _prepare(model: Predictor, asked: PredictArguments) -> tuple[Prepared, bool]:
    """The runs for a request, and whether it gave arrays."""
    if asked.kind == "json":
        request = _read_object(asked)
        if "inputs" in request:
            if not isinstance(request["inputs"], dict) or len(request) != 1:
                raise RequestError("`inputs` must be an object of arrays by name, and the only key of the request")
            return model.prepare_arrays(request["inputs"]), True
    given, ready = _read_given(asked)
    return model.prepare(given), ready


def _read_given(asked: PredictArguments) -> tuple[Given, bool]:
    if asked.kind == "text":
        return Given(text=_read_text(asked)), False
    if asked.kind == "json":
        return _given_of(_read_object(asked)), False
    if asked.file is None:
        raise RequestError("the body is empty")
    field = {"npz": "arrays", "image": "image", "audio": "audio"}[asked.kind]
    fields: dict[str, Any] = {field: asked.file}
    return Given(**fields), asked.kind == "npz"


def _read_text(asked: PredictArguments) -> str:
    if asked.file is None:
        return asked.body or ""
    try:
        return Path(asked.file).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"the body is not UTF-8: {error}") from error


def _read_object(asked: PredictArguments) -> dict[str, Any]:
    try:
        value = parse_json(_read_text(asked))
    except JSONError as error:
        raise DataError(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError("the body must be a JSON object", hint=_FORMS)
    return value


_KEYS = ("image", "audio", "text", "text_pair", "prompt", "labels")
_FORMS = 'for example {"inputs": {"x": [[1.0, 2.0]]}}, {"text": "..."} or {"image": "BASE64"}'


def _given_of(request: Mapping[str, Any]) -> Given:
    unknown = next((name for name in request if name not in _KEYS), None)
    if unknown is not None:
        raise DataError(f"unknown key `{unknown}`", hint=did_you_mean(unknown, ("inputs", *_KEYS)))
    asked = [name for name in ("image", "audio", "text", "prompt") if request.get(name) is not None]
    if len(asked) != 1:
        raise DataError(f"the request must hold one input but holds {len(asked)}", hint=_FORMS)
    for name in ("image", "audio", "text", "text_pair", "prompt"):
        if not isinstance(request.get(name), str | None):
            raise DataError(f"`{name}` must be text")
    labels = request.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise DataError("`labels` must be a list of texts")
    files = {name: _decode_file(request[name], name) for name in ("image", "audio") if request.get(name) is not None}
    texts = {name: request.get(name) for name in ("text", "text_pair", "prompt")}
    return Given(**files, **texts, labels=tuple(labels))


def _decode_file(text: str, name: str) -> str:
    """Base64 as a file in the folder of this process, where readers of images and recordings take it from."""
    try:
        content = base64.b64decode(text.partition(",")[2] if text.startswith("data:") else text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"`{name}` is not base64: {error}") from error
    path = Path(f"given_{name}").absolute()
    path.write_bytes(content)
    return str(path)


def _read_array(value: Any, spec: InputSpec) -> Any:
    """An array of the type of its input; whole numbers are fine for floats, and not the other way round."""
    if spec.form.endswith("sequence"):
        if not isinstance(value, list):
            raise DataError(f"input `{spec.name}` is a sequence, so a list of arrays")
        return [_read_array(one, InputSpec(spec.name, "tensor(float)", ())) for one in value]
    try:
        array: npt.NDArray[Any] = np.asarray(value)
    except ValueError as error:
        raise DataError(f"input `{spec.name}` is not an array: {error}") from error
    if spec.dtype == "str":
        if array.dtype.kind != "U":
            raise DataError(f"input `{spec.name}` takes texts")
        return array.astype(object)
    wanted = np.dtype(spec.dtype)
    kinds = {"f": "iuf", "i": "iu", "u": "iu", "b": "b"}[wanted.kind]
    if array.size and array.dtype.kind not in kinds:
        raise DataError(f"input `{spec.name}` takes {wanted}, and the request holds other values")
    if wanted.kind in "iu" and array.size:
        limits = np.iinfo(wanted)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise DataError(f"input `{spec.name}` takes {wanted}, and a number of the request does not fit it")
    return array.astype(wanted)


def _storable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.astype(str) if array.dtype.hasobject else array


def _list_values(outputs: Outputs) -> dict[str, Any]:
    arrays = {name: as_array(value) for name, value in outputs.items()}
    count = sum(array.size for array in arrays.values())
    if count > _MOST_VALUES:
        raise RequestError(
            f"the outputs hold {count} numbers, more than {_MOST_VALUES} for an answer in JSON",
            hint="ask for them as a file: `Accept: application/x-npz`",
        )
    return {name: _to_list(array) for name, array in arrays.items()}


def _to_list(array: npt.NDArray[Any]) -> Any:
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()

    def clean(value: Any) -> Any:
        return [clean(one) for one in value] if isinstance(value, list) else value if math.isfinite(value) else None

    return clean(array.tolist())


def generate(args: dict[str, Any], context: object) -> GeneratedText:
    """Text for a prompt or a conversation; every piece is an event."""
    asked, model, told = values.read(GenerateArguments, args), _opened[0], cast("Context", context)
    if not isinstance(model, TextModel) or not isinstance(model.model, Decoder):
        raise RequestError("the model does not continue texts", hint="`POST /predict` asks it")
    return model.model.generate(asked, lambda text, tokens: told.tell(TextPiece(text=text, tokens=tokens)), told.stop)
