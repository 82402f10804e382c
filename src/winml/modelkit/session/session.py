"""WinMLSession: the only owner of ONNX Runtime sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from winml.modelkit.core.errors import CheckFailed, PlacementError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.graph.inputs import InputSpec
from winml.modelkit.session import failures
from winml.modelkit.session.placement import AssignedNode, Placement, read_nodes, read_placement
from winml.modelkit.session.selection import select

Arrays = Mapping[str, npt.NDArray[Any]]


class WinMLSession:
    """A model opened on a target, never with a silent fallback to another one.

    The runtime may still leave single nodes on the CPU: `placement` says which, `strict_ep` makes that an error.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        target: Target,
        section: SessionSection | None = None,
        strict_ep: bool = False,
        distribution: str | None = None,
        asking: bool = False,
    ) -> None:
        """Open `model`; `distribution` names the package to take the EP from where several bring it.

        `asking` is for those who want to know what the EP says: it logs everything, and may take no node at all.
        """
        self.path = require_model_file(model)
        self.target = target
        self.section = section or SessionSection()
        self._info = catalog.BY_NAME[target.ep]
        self._asking = asking
        self._bindings: list[Any] = []
        self._session: Any = self._open(distribution)
        self.placement = self._checked_placement(strict_ep=strict_ep)

    def _open(self, distribution: str | None) -> Any:
        chosen = select(self.target, self.section, distribution, verbose=self._asking)
        self.package = chosen.package
        self.provider_options, self.added_options = chosen.provider_options, chosen.added_options
        """Options the EP was opened with, and those among them that nobody asked for by name."""
        try:
            # Without enable_fallback=0 the wrapper retries on the CPU when an EP cannot be created or a run fails.
            return onnxruntime.InferenceSession(
                str(self.path), chosen.options, providers=chosen.providers, enable_fallback=0
            )
        except Exception as error:
            raise failures.opening(error, self.path) from error

    def _checked_placement(self, *, strict_ep: bool) -> Placement:
        wanted = self._info.full_name
        providers = self._session.get_providers()
        if wanted not in providers:
            raise PlacementError(
                f"`{self.target}` was requested, but the runtime opened {', '.join(providers)} instead",
                hint="check the provider options and that the device is there; `winml sys` shows what was found",
            )
        placement = read_placement(self._session.get_provider_graph_assignment_info(), wanted)
        ops = ", ".join(f"{op} x{n}" for op, n in placement.cpu_ops.items())
        if placement.took_nothing and not self._asking:
            raise PlacementError(
                f"`{self.target}` took none of the {placement.total} nodes; all of them would run on the CPU: {ops}",
                hint="check the provider options (an unknown `soc_model` does this), dynamic shapes and operator "
                "types; the provider's last log lines may say why",
                details={"placement": placement.to_json()},
            )
        if strict_ep and placement.fell_back:
            raise CheckFailed(
                f"{sum(placement.fell_back.values())} of {placement.total} nodes are not on `{self.target}`: {ops}",
                hint="drop `--strict-ep` to run with them on the CPU",
                details={"placement": placement.to_json()},
            )
        return placement

    def assigned_nodes(self) -> tuple[AssignedNode, ...]:
        """Every node with the EP it went to."""
        return read_nodes(self._session.get_provider_graph_assignment_info())

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return tuple(InputSpec(i.name, i.type, tuple(i.shape)) for i in self._session.get_inputs())

    @property
    def outputs(self) -> tuple[InputSpec, ...]:
        return tuple(InputSpec(o.name, o.type, tuple(o.shape)) for o in self._session.get_outputs())

    def run(self, inputs: Arrays) -> dict[str, Any]:
        """The outputs by name."""
        names = [o.name for o in self.outputs]
        try:
            return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))
        except Exception as error:
            raise failures.running(error, self.path) from error

    def bound_run(self, inputs: Arrays) -> tuple[Callable[[], None], bool]:
        """A call that runs these inputs again and again, and whether it does so through IO binding.

        With IO binding inputs are bound once and the outputs of the first run are written again by later ones.
        Strings and values that are not tensors cannot be bound; those are run the plain way.
        """
        if not all(v.dtype != np.dtype(object) for v in inputs.values()) or not self._outputs_bindable():
            names, feed = [o.name for o in self.outputs], dict(inputs)
            return self._guarded(lambda: self._session.run(names, feed)), False
        binding = self._session.io_binding()
        self._bindings.append(binding)
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for output in self.outputs:
            binding.bind_output(output.name)
        run_with_iobinding = self._session.run_with_iobinding
        return self._guarded(lambda: run_with_iobinding(binding)), True

    def _outputs_bindable(self) -> bool:
        return all(o.type.startswith("tensor(") and o.type != "tensor(string)" for o in self.outputs)

    def _guarded(self, call: Callable[[], Any]) -> Callable[[], None]:
        """`call`, raising our errors; the try costs nothing while nothing is raised."""

        def run() -> None:
            try:
                call()
            except Exception as error:
                raise failures.running(error, self.path) from error

        return run

    def close(self) -> None:
        """Let go of the runtime's session, after what is bound to it: WebGPU crashes in the other order."""
        for binding in self._bindings:
            binding.clear_binding_outputs()
            binding.clear_binding_inputs()
        self._bindings.clear()
        self._session = None

    def __enter__(self) -> WinMLSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
