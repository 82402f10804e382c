"""Opens an ONNX Runtime session on a target and checks that it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import onnxruntime

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, ModelFileError, PlacementError, SessionError
from winml.modelkit.core.inside import stays_inside
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import EPInfo, Package
from winml.modelkit.graph.outline import context_file_names, outline
from winml.modelkit.session import failures
from winml.modelkit.session.monitor.ep_monitor import PlacedNode
from winml.modelkit.session.placement import BORDER, border_nodes, count_border_nodes, read_placement
from winml.modelkit.session.selection import select


@dataclass(frozen=True)
class Overlay:
    """Options a monitor lays over those of the session, and the target it pins."""

    session: Mapping[str, str] = field(default_factory=dict)
    provider: Mapping[str, str] = field(default_factory=dict)
    target: Target | None = None
    owner: str = ""

    @property
    def brings_options(self) -> bool:
        return bool(self.session or self.provider or self.target)


@dataclass(frozen=True)
class SessionFacts:
    """What is known of a session since it was opened; outlives it."""

    placement: Placement
    nodes: tuple[PlacedNode, ...]
    provider_options: dict[str, str]
    added_options: dict[str, str]
    """Provider options that were added by default."""
    package: Package


@dataclass(frozen=True)
class Request:
    """What to open, where and how."""

    path: Path
    target: Target
    section: SessionSection
    overlay: Overlay
    strict_ep: bool = False
    asking: bool = False
    """Log everything, and let the EP take no node at all."""
    distribution: str | None = None


def open_session(request: Request) -> tuple[Any, SessionFacts]:
    """The runtime's session, never on another EP than the target's, and what is known of it."""
    info = catalog.BY_NAME[request.target.ep]
    require_inside(request.path)
    section = replace(request.section, ep_options={**request.section.ep_options, **request.overlay.provider})
    chosen = select(
        request.target, section, request.distribution, added=request.overlay.session, verbose=request.asking
    )
    try:
        # Without enable_fallback=0 the wrapper retries on the CPU when an EP cannot be created or a run fails.
        session = onnxruntime.InferenceSession(
            str(request.path), chosen.options, providers=chosen.providers, enable_fallback=0
        )
    except Exception as error:
        raise failures.opening(error, request.path) from error
    finally:
        chosen.release()
    providers = session.get_providers()
    if info.full_name not in providers:
        raise PlacementError(
            f"`{request.target}` was requested, but the runtime opened {', '.join(providers)} instead",
            hint="check the provider options and that the device is present; `winml sys` shows what was found",
        )
    # Lost options would make an empty trace; an EP that does not report its options cannot be checked.
    arrived = session.get_provider_options().get(info.full_name)
    lost = [k for k, v in request.overlay.provider.items() if arrived and arrived.get(k) != v]
    if lost:
        raise SessionError(
            f"provider options of {request.overlay.owner} did not reach `{info.name}`: {', '.join(lost)}"
        )
    subgraphs = session.get_provider_graph_assignment_info()
    placement = _placement(subgraphs, info, request.path, chosen.provider_options)
    _check_placement(placement, request)
    return session, SessionFacts(
        placement, _nodes(subgraphs), chosen.provider_options, chosen.added_options, chosen.package
    )


def _placement(subgraphs: Any, info: EPInfo, path: Path, provider_options: Mapping[str, str]) -> Placement:
    """Where nodes went, with what the EP leaves to the CPU by a setting apart from what it did not take."""
    found = read_placement(subgraphs, info.full_name)
    if info.border_option is None or not set(BORDER) & set(found.cpu_ops):
        return found
    whole = outline(path)
    # What a compiled model has outside was left there when it was compiled.
    if provider_options.get(info.border_option) == "0" and not whole.compiled:
        return found
    return replace(found, by_setting=count_border_nodes(subgraphs, border_nodes(whole)))


def require_inside(model: Path) -> None:
    """Raise when a compiled part of a model names a file outside its folder; not every EP looks at that itself."""
    for name in context_file_names(model):
        if not stays_inside(name):
            raise ModelFileError(
                f"a compiled part of `{model}` names the file `{name}`, which is outside the model's folder",
                hint="put the file beside the model",
            )


def _nodes(subgraphs: Any) -> tuple[PlacedNode, ...]:
    return tuple(
        PlacedNode(node.name, node.op_type, subgraph.ep_name, number)
        for number, subgraph in enumerate(subgraphs)
        for node in subgraph.get_nodes()
    )


def _check_placement(placement: Placement, request: Request) -> None:
    target = request.target
    ops = ", ".join(f"{op} x{n}" for op, n in (placement.fell_back or placement.cpu_ops).items())
    if placement.took_nothing and not request.asking:
        raise PlacementError(
            f"`{target}` took none of the {placement.total} nodes; all of them would run on the CPU: {ops}",
            hint="check the provider options (an unknown `soc_model` causes this), dynamic shapes and operator "
            "types; the provider's last log lines may say why",
            details={"placement": to_json(placement)},
        )
    if request.strict_ep and placement.fell_back:
        raise CheckFailed(
            f"{sum(placement.fell_back.values())} of {placement.total} nodes are not on `{target}`: {ops}",
            hint="drop `--strict-ep` to run with them on the CPU",
            details={"placement": to_json(placement)},
        )
