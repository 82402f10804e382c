"""WinMLSession: the only owner of ONNX Runtime sessions."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import SessionError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target
from winml.modelkit.ep import options
from winml.modelkit.ep.catalog import Package
from winml.modelkit.graph.inputs import InputSpec
from winml.modelkit.graph.sizes import name_dims
from winml.modelkit.session import failures
from winml.modelkit.session.monitor.ep_monitor import EPMonitor
from winml.modelkit.session.options import PROFILE_PREFIX
from winml.modelkit.session.output_arrays import as_array
from winml.modelkit.session.perf import observe_runs
from winml.modelkit.session.placement import AssignedNode, read_nodes
from winml.modelkit.session.runtime import Overlay, Request, SessionFacts, open_session
from winml.modelkit.session.stats import PerfContext, PerfStats

Arrays = Mapping[str, Any]
"""Values by input, as `graph.inputs.Arrays` has them."""
CPU = Target("cpu", "cpu")


@dataclass
class _Bound:
    """A run with its inputs bound; released when the session is reset, so that nothing keeps the old one alive."""

    call: Callable[[], Any] | None
    binding: Any = None

    def run(self) -> None:
        if self.call is None:
            raise SessionError("the session was reset after this run was bound", hint="call bind_run() again")
        self.call()

    def release(self) -> None:
        if self.binding is not None:
            self.binding.clear_binding_outputs()
            self.binding.clear_binding_inputs()
        self.call = self.binding = None


class WinMLSession:
    """A model opened on a target, never with a silent fallback to another one.

    The runtime may still leave single nodes on the CPU: `placement` says which, `strict_ep` makes that an error.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        target: Target | None = None,
        section: SessionSection | None = None,
        strict_ep: bool = False,
        distribution: str | None = None,
        lazy: bool = False,
        asking: bool = False,
    ) -> None:
        """Open `model`, or with `lazy` when it is first used.

        Without a target it is on the CPU, unless a monitor pins its EP. `distribution` names the package to take the EP
        from where several provide it. `asking` is for finding out what the EP does: it logs everything, and may take
        no node at all.
        """
        self.path = require_model_file(model)
        self.pinned = target
        self.section = section or SessionSection()
        options.complete(self.target, self.section.ep_options)
        self._strict_ep = strict_ep
        self._distribution = distribution
        self._asking = asking
        self._overlay = Overlay()
        self._stats: PerfStats | None = None
        self._session: Any = None
        self._bound: list[_Bound] = []
        self.facts: SessionFacts | None = None
        """What was found when it was last opened."""
        self.last_inputs: Arrays = {}
        if not lazy:
            self.compile()

    @property
    def target(self) -> Target:
        """Where it is, or will be when it is opened next."""
        # Called while the constructor still runs.
        laid_over = getattr(self, "_overlay", Overlay()).target
        return laid_over or self.pinned or CPU

    @property
    def is_open(self) -> bool:
        return self._session is not None

    def compile(self) -> None:
        """Open the runtime's session, if it is not open."""
        if self._session is None:
            request = Request(
                self.path,
                self.target,
                self.section,
                self._overlay,
                strict_ep=self._strict_ep,
                asking=self._asking,
                distribution=self._distribution,
            )
            self._session, self.facts = open_session(request)

    def reset(self) -> None:
        """Release the runtime's session, after what is bound to it: WebGPU crashes in the other order."""
        self.release_bound()
        if self._session is not None and PROFILE_PREFIX in self._overlay.session:
            # The frames of an exception may keep the session alive; its profile must be written anyway.
            self._session.end_profiling()
        self._session = None

    close = reset

    def release_bound(self) -> None:
        """Release what is bound, and the memory of its inputs and outputs."""
        for bound in self._bound:
            bound.release()
        self._bound.clear()

    def _require_facts(self) -> SessionFacts:
        if self.facts is None:
            self.compile()
        assert self.facts is not None
        return self.facts

    @property
    def placement(self) -> Placement:
        return self._require_facts().placement

    @property
    def provider_options(self) -> dict[str, str]:
        """Options the EP was opened with."""
        return self._require_facts().provider_options

    @property
    def added_options(self) -> dict[str, str]:
        """The options among them that were added by default."""
        return self._require_facts().added_options

    @property
    def package(self) -> Package:
        return self._require_facts().package

    def list_nodes(self) -> tuple[AssignedNode, ...]:
        """Every node with the EP it went to."""
        return read_nodes(self._session.get_provider_graph_assignment_info())

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        self.compile()
        return tuple(InputSpec(i.name, i.type, name_dims(i.name, i.shape)) for i in self._session.get_inputs())

    @property
    def outputs(self) -> tuple[InputSpec, ...]:
        self.compile()
        return tuple(InputSpec(o.name, o.type, name_dims(o.name, o.shape)) for o in self._session.get_outputs())

    def run(self, inputs: Arrays) -> dict[str, Any]:
        """The outputs by name; timed inside a perf() block."""
        self.compile()
        names, feed, found = [o.name for o in self.outputs], dict(inputs), []
        self.last_inputs = feed
        self._guard(lambda: found.extend(self._session.run(names, feed)))()
        return dict(zip(names, found, strict=True))

    def run_arrays(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """The outputs by name, each as one array: sequences and maps too."""
        return {name: as_array(value) for name, value in self.run(inputs).items()}

    def bind_run(self, inputs: Arrays) -> tuple[Callable[[], None], bool]:
        """A call that runs these inputs again and again, and whether it does so through IO binding.

        With IO binding inputs are bound once and the outputs of the first run are written again by later ones.
        Strings and values that are not tensors cannot be bound; those are run without binding.
        """
        self.compile()
        self.last_inputs = dict(inputs)
        are_tensors = all(o.type.startswith("tensor(") and o.type != "tensor(string)" for o in self.outputs)
        bindable = are_tensors and all(isinstance(v, np.ndarray) and v.dtype != object for v in inputs.values())
        bound = self._io_bound(inputs) if bindable else self._plain(inputs)
        self._bound.append(bound)
        return self._guard(bound.run), bindable

    def new_binding(self) -> tuple[Any, Callable[[], None]]:
        """A binding of the runtime to fill, and the call that runs it; released when the session is reset."""
        self.compile()
        binding = self._session.io_binding()
        bound = _Bound(self._bound_call(binding), binding)
        self._bound.append(bound)
        return binding, self._guard(bound.run)

    def _bound_call(self, binding: Any) -> Callable[[], Any]:
        """Runs a binding.

        On the CPU the Python class of the runtime is passed by: it makes new options for every run and looks for a
        captured graph, which takes 5 of the 34 us of a tiny decoder's step.
        """
        run_with_iobinding = self._session.run_with_iobinding
        if self.target.ep != "cpu":
            return lambda: run_with_iobinding(binding)
        inner, options = getattr(self._session, "_sess", None), onnxruntime.RunOptions()
        bound = getattr(binding, "_iobinding", None)
        if inner is None or bound is None:  # another version of the runtime
            return lambda: run_with_iobinding(binding)
        native = inner.run_with_iobinding
        return lambda: native(bound, options)

    def _plain(self, inputs: Arrays) -> _Bound:
        names, feed, session = [o.name for o in self.outputs], dict(inputs), self._session
        return _Bound(lambda: session.run(names, feed))

    def _io_bound(self, inputs: Arrays) -> _Bound:
        binding = self._session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for output in self.outputs:
            binding.bind_output(output.name)
        run_with_iobinding = self._session.run_with_iobinding
        return _Bound(lambda: run_with_iobinding(binding), binding)

    def _guard(self, call: Callable[[], Any]) -> Callable[[], None]:
        """`call`, raising our errors and timed inside a perf() block; the try costs nothing while nothing is raised."""
        timed = call if self._stats is None else self._stats.time_call(call)

        def run() -> None:
            try:
                timed()
            except SessionError:
                raise
            except Exception as error:
                raise failures.running(error, self.path, self.last_inputs or {}) from error

        return run

    def perf(
        self, *, warmup: int = 0, monitor: EPMonitor | None = None
    ) -> contextlib.AbstractContextManager[PerfContext]:
        """Time the runs of a block, and let one monitor observe them; the first `warmup` runs are kept apart."""
        return observe_runs(self, warmup=warmup, monitor=monitor)

    @contextlib.contextmanager
    def observing(self, stats: PerfStats) -> Iterator[None]:
        """Record the runs of a block; only one such block at a time."""
        if self._stats is not None:
            raise RuntimeError("perf() blocks of one session cannot be nested")
        self._stats = stats
        try:
            yield
        finally:
            self._stats = None

    @contextlib.contextmanager
    def use_overlay(self, overlay: Overlay) -> Iterator[None]:
        """Open with a monitor's options inside a block; a session that has some must be reset before it ends."""
        before, self._overlay = self._overlay, overlay
        try:
            yield
        finally:
            self._overlay = before

    def __enter__(self) -> WinMLSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
