"""One call of the API: its arguments as commands take them, its events, its progress and its errors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.api.arguments import at_least, is_proto, path_of, sizes_of, write_proto
from winml.modelkit.api.progress import Progress, show_progress
from winml.modelkit.core import plain_text
from winml.modelkit.core.errors import Interrupted, ModelkitError, RequestError, of_name, of_system
from winml.modelkit.core.events import Event, OnEvent

if TYPE_CHECKING:
    from winml.modelkit.api.arguments import Arrays, DataLike, Dims, ModelLike, PathLike, Shapes
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.graph.input_settings import InputSettings


@contextlib.contextmanager
def errors_of_modelkit() -> Iterator[None]:
    """Raise errors of the system as ours, and Ctrl-C always as KeyboardInterrupt; a traceback shows the hint, too.

    A loop that catches `ModelkitError` must not swallow Ctrl-C; what was measured is in `__cause__.result`.
    """
    try:
        try:
            yield
        except (OSError, UnicodeEncodeError) as error:
            found = of_name(error) if isinstance(error, UnicodeEncodeError) else of_system(error)
            if found is None:
                raise
            raise found from error
    except Interrupted as error:
        raise KeyboardInterrupt(error.message) from error
    except ModelkitError as error:
        error.args = (plain_text.lines(error.message),)  # names in it, which a traceback would write to a terminal
        if error.hint is not None:
            error.add_note(f"hint: {plain_text.one_line(error.hint)}")
        raise


class Call:
    """What Python callers give as what requests hold; files that have to be made for that go when the call ends."""

    def __init__(self, on_event: OnEvent, stack: contextlib.ExitStack) -> None:
        self.on_event = on_event
        self._stack = stack
        self._folder: Path | None = None

    def _new_file(self, stem: str, suffix: str) -> Path:
        if self._folder is None:
            from winml.modelkit.worker.scratch import ScratchFolder

            self._folder = self._stack.enter_context(ScratchFolder("winml-api-"))
        taken = len(list(self._folder.glob(f"{stem}*{suffix}")))
        return self._folder / f"{stem}{taken + 1 if taken else ''}{suffix}"

    def model(self, given: ModelLike) -> str:
        """What `-m` takes; a model in memory is written to a file."""
        if is_proto(given):
            return str(write_proto(given, self._new_file("model", ".onnx")))
        return path_of(given, "model")

    def models(self, given: ModelLike | Sequence[ModelLike]) -> tuple[str, ...]:
        """One model or several."""
        if isinstance(given, Sequence) and not isinstance(given, str):
            return tuple(map(self.model, given))
        return (self.model(given),)

    def data(
        self,
        given: DataLike | None,
        *,
        samples: int | None = None,
        columns: Mapping[str, str] | None = None,
        processor: PathLike | None = None,
        length: int | None = None,
        seed: int = 0,
        name: str = "data",
    ) -> DataSection | None:
        """Calibration or labelled data; arrays are written to a file."""
        at_least(1, samples=samples, length=length)
        at_least(0, seed=seed)
        if given is None:
            return None
        from winml.modelkit.core.config import DataSection

        return DataSection(
            source=path_of(given, name) if isinstance(given, str | os.PathLike) else self._arrays(given, name),
            limit=samples,
            seed=seed,
            columns=dict(columns or {}),
            processor=None if processor is None else os.fspath(processor),
            length=length,
        )

    def _arrays(self, given: Arrays | Sequence[Arrays], name: str) -> str:
        from winml.modelkit.graph.npz import stack_samples, write_arrays

        path = self._new_file(name, ".npz")
        write_arrays(path, given if isinstance(given, Mapping) else stack_samples(given))
        return str(path)

    def inputs(
        self,
        inputs: PathLike | Arrays | None,
        *,
        dims: Dims | None,
        shapes: Shapes | None,
        batch_size: int | None,
        int_ranges: Mapping[str, tuple[int, int]] | None,
        seed: int,
    ) -> InputSettings:
        """What a model is run on: arrays, a file of them, or synthetic inputs of these sizes."""
        from winml.modelkit.graph.input_settings import InputSettings

        at_least(1, batch_size=batch_size)
        at_least(0, seed=seed)
        if inputs is not None and (dims or shapes or batch_size or int_ranges):
            raise RequestError("`inputs` cannot be combined with `dims`, `shapes`, `batch_size` or `int_ranges`")
        for name, (low, high) in (int_ranges or {}).items():
            if low > high:
                raise RequestError(f"the range of `{name}` is empty: {low} is above {high}")
        npz = None
        if inputs is not None:
            npz = Path(self._arrays(inputs, "inputs") if isinstance(inputs, Mapping) else os.fspath(inputs)).absolute()
        return InputSettings(
            npz=npz,
            dims=sizes_of(dims, shapes),
            batch_size=batch_size,
            int_ranges=dict(int_ranges or {}),
            seed=seed,
        )


@contextlib.contextmanager
def calling(
    on_event: OnEvent | None = None, progress: bool | None = False, line: type[Progress] | None = None
) -> Iterator[Call]:
    """A call of the API; its events go to `on_event` and to a line of progress of this kind."""
    with errors_of_modelkit(), contextlib.ExitStack() as stack:
        shown = None if line is None else stack.enter_context(show_progress(progress, line))

        def tell(event: Event) -> None:
            if shown is not None:
                shown.on_event(event)
            if on_event is not None:
                on_event(event)

        yield Call(tell, stack)
