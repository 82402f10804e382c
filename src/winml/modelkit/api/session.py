"""`wk.Session`: a model that is open on a target, with arrays in and arrays out."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from winml.modelkit.api.arguments import at_least, is_proto, options_of, path_of, sizes_of, trust_of, write_proto
from winml.modelkit.api.call import errors_of_modelkit
from winml.modelkit.core.errors import DataError, RequestError, UnavailableError
from winml.modelkit.core.suggest import did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from winml.modelkit.api.arguments import Dims, EPOptions, ModelLike, Shapes, Words
    from winml.modelkit.building.model_argument import ModelArgument
    from winml.modelkit.core.placement import Placement
    from winml.modelkit.core.target import Target
    from winml.modelkit.ep.targets import Resolved
    from winml.modelkit.graph.inputs import InputSpec
    from winml.modelkit.session.session import WinMLSession
    from winml.modelkit.worker.scratch import ScratchFolder

    Array = npt.NDArray[np.generic]


def _as_array(given: Any, spec: InputSpec) -> Array:
    import numpy as np

    return np.asarray(given, None if hasattr(given, "dtype") else spec.dtype)


class Session:
    """A model open on a target in this process, never on another one: what the target refuses is an error.

    The runtime may leave single nodes to the CPU: `placement` says which, and `strict_ep` makes that an error.
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        target: str | None = None,
        dims: Dims | None = None,
        shapes: Shapes | None = None,
        threads: int | None = None,
        ep_options: EPOptions | None = None,
        trust_options: Words = (),
        strict_ep: bool = False,
    ) -> None:
        """Open a model; without `target` on what its build folder is for, or on the best device of this machine.

        An NPU needs a size for every open dimension; `dims` and `shapes` give those that the model does not say.
        """
        at_least(1, threads=threads)
        with errors_of_modelkit():
            from winml.modelkit.building.model_argument import model_argument
            from winml.modelkit.ep import options, probing
            from winml.modelkit.session.session import WinMLSession
            from winml.modelkit.worker.scratch import ScratchFolder

            folder = ScratchFolder("winml-session-")
            opened: list[WinMLSession] = []
            self._finalize = weakref.finalize(self, _release, folder, opened)
            typed = options_of(ep_options)
            argument = model_argument(
                str(write_proto(model, folder.path / "model.onnx")) if is_proto(model) else path_of(model, "model"),
                trust=trust_of(trust_options).with_typed(typed),
            )
            resolved = probing.choose(argument.target, target, None, None).resolved
            _require_here(resolved)
            path, fixed_dims = _fix_sizes(argument, resolved, sizes_of(dims, shapes), folder.path)
            threads = argument.section.threads if threads is None else threads
            given = options.with_threads(resolved.target, {**argument.section.ep_options, **typed}, threads)
            self._session = WinMLSession(
                path,
                target=resolved.target,
                section=replace(
                    argument.section,
                    threads=threads,
                    ep_options=options.check_options(resolved.target, given),
                    fixed_dims=fixed_dims,
                ),
                strict_ep=strict_ep,
                distribution=resolved.installed.package.distribution,
            )
            opened.append(self._session)
            self._inputs = self._session.inputs

    @property
    def target(self) -> Target:
        """Where it is open."""
        return self._session.target

    @property
    def placement(self) -> Placement:
        """How many nodes each execution provider has, and which operators are left to the CPU."""
        return self._session.placement

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """Name, type and shape of every input."""
        return self._inputs

    @property
    def outputs(self) -> tuple[InputSpec, ...]:
        """Name, type and shape of every output."""
        return self._require_open().outputs

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, of arrays by the names of inputs.

        A sequence is a list of arrays, on both sides; an optional input may be left out or None.
        """
        from winml.modelkit.graph.inputs import fitting

        session = self._require_open()
        known = [spec.name for spec in self._inputs]
        for name in inputs:
            if name not in known:
                raise DataError(f"the model has no input `{name}`", hint=did_you_mean(name, known))
        # Numbers and lists get the type of the input; an array has one, and another than the input's is an error.
        arrays: dict[str, Any] = {}
        for spec in self._inputs:
            given = inputs.get(spec.name)
            if given is not None and spec.form.endswith("sequence"):
                arrays[spec.name] = [_as_array(element, spec) for element in given]
            elif given is not None:
                arrays[spec.name] = _as_array(given, spec)
        with errors_of_modelkit():
            return session.run(fitting(arrays, self._inputs, source="the array"))

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Any]:
        """The outputs by name, of arrays in the order of the inputs or by their names."""
        names = [spec.name for spec in self._inputs]
        if len(arrays) > len(names):
            raise DataError(f"the model has {len(names)} inputs but got {len(arrays)} arrays")
        placed = dict(zip(names, arrays, strict=False))
        twice = next((name for name in named if name in placed), None)
        if twice is not None:
            raise DataError(f"input `{twice}` is given twice")
        return self.run({**placed, **named})

    def close(self) -> None:
        """Release the model; a closed session does not run any more."""
        self._finalize()

    def _require_open(self) -> WinMLSession:
        if not self._finalize.alive:
            raise RequestError("the session is closed", hint="open it again: `Session(model)`")
        return self._session

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        simulated = " (simulated)" if self.target.simulated else ""
        return f"<Session {self._session.path.name!r} on {self.target}{simulated}>"


def _release(folder: ScratchFolder, opened: list[WinMLSession]) -> None:
    """Close the session before the files go that it may have open."""
    for session in opened:
        session.close()
    folder.close()


def _require_here(resolved: Resolved) -> None:
    """Raise for an execution provider of another environment, which only another process can load."""
    if resolved.installed.python is not None:
        raise UnavailableError(
            f"`{resolved.target}` is installed in an environment of its own, which this process cannot load",
            hint=f"install `{resolved.installed.package.distribution}` in this environment, or measure with `perf`",
        )


def _fix_sizes(
    argument: ModelArgument, resolved: Resolved, dims: Mapping[str, int], folder: Path
) -> tuple[Path, dict[str, int]]:
    """The file to open and the sizes that are fixed in it: those that were given, on an NPU all of them."""
    from winml.modelkit.data import sizes
    from winml.modelkit.graph.signature import read_signature
    from winml.modelkit.graph.sizes import match_sizes

    if resolved.target.device == "npu":
        return sizes.openable(argument.path, resolved.target, folder), sizes.find(argument.path, dims).require().dims
    return argument.path, match_sizes(read_signature(argument.path).inputs, dims) if dims else {}
