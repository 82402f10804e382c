"""Attaches a monitor to a session for a block and detaches it again; the only place that does."""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.ep.discovery import this_host
from winml.modelkit.ep.targets import TargetRequest, resolve
from winml.modelkit.graph.outline import outline
from winml.modelkit.session import ep_registry
from winml.modelkit.session.monitor.ep_monitor import EPMonitor, Observation
from winml.modelkit.session.monitor.null import NullEPMonitor
from winml.modelkit.session.options import SAVED_GRAPH
from winml.modelkit.session.runtime import Overlay
from winml.modelkit.session.stats import PerfContext, PerfStats

if TYPE_CHECKING:
    from winml.modelkit.session.session import WinMLSession

log = logging.getLogger(__name__)

SAVED_GRAPH_BYTES = 1 << 30
"""Weights above which the executed graph is not saved for a trace: it holds them all, and protobuf ends at 2 GB."""


def _pin_target(session: WinMLSession, monitor: EPMonitor) -> Target | None:
    """The target a monitor pins for the duration; None where the session has one already."""
    wanted = monitor.ep_name
    if session.pinned is None:
        if wanted is None:
            return None
        return resolve(TargetRequest(catalog.find(wanted), None), this_host(), ep_registry.kinds_here).target
    if wanted is not None and catalog.find(wanted).name != session.pinned.ep:
        raise RequestError(
            f"{type(monitor).__name__} observes `{wanted}`, but the session is on `{session.pinned}`",
            hint="open the session on the monitor's EP, or use the monitor of the session's EP",
        )
    return None


def _saves(session: WinMLSession, target: Target) -> bool:
    """Whether the runtime can save the graph it executes: not with compiled nodes in it, nor at any size."""
    if not catalog.BY_NAME[target.ep].saves_graph:
        return False
    try:
        return outline(session.path).weight_bytes <= SAVED_GRAPH_BYTES
    except ModelFileError:
        return False  # opening it reports why


def _overlay(session: WinMLSession, monitor: EPMonitor) -> Overlay:
    name = type(monitor).__name__
    pinned = _pin_target(session, monitor)
    target = pinned or session.target
    options = {k: v for k, v in monitor.get_session_options().items() if k != SAVED_GRAPH or _saves(session, target)}
    overlay = Overlay(options, monitor.get_provider_options(), pinned, name)
    if overlay.provider and not catalog.BY_NAME[target.ep].options:
        raise RequestError(
            f"provider options of {name} have no effect: `{target}` accepts none",
            hint="open the session on the EP the monitor observes",
        )
    overridden = [k for k, v in overlay.provider.items() if session.section.ep_options.get(k, v) != v]
    if overridden:
        log.warning("%s overrides the session's own %s", name, ", ".join(overridden))
    return overlay


def _observation(session: WinMLSession, stats: PerfStats) -> Observation:
    facts = session.facts
    return Observation(
        model=str(session.path),
        target=session.target,
        warmup_runs=stats.warmup_runs,
        wall_ns=stats.wall_ns,
        nodes=facts.nodes if facts else (),
        inputs=session.last_inputs,
        provider_options=facts.provider_options if facts else {},
    )


def _leave(monitor: EPMonitor, failure: BaseException | None) -> None:
    """Let the monitor read its trace; where the block failed, its own failure must not hide that one."""
    try:
        monitor.__exit__(type(failure) if failure else None, failure, failure.__traceback__ if failure else None)
    except Exception:
        if failure is None:
            raise
        log.warning("%s failed after the observed block had failed", type(monitor).__name__, exc_info=True)


@contextlib.contextmanager
def observe_runs(session: WinMLSession, *, warmup: int, monitor: EPMonitor | None) -> Iterator[PerfContext]:
    """Run a block with a monitor laid over the session.

    Order at the end: session reset, garbage collected, monitor exit, options restored. An EP that writes its trace when
    its session is destroyed has written it before the monitor reads; whatever fails, the session can be used again.
    """
    chosen = monitor or NullEPMonitor()
    stats = PerfStats(warmup)
    with session.observing(stats):
        overlay = _overlay(session, chosen)
        if overlay.brings_options and session.is_open:
            log.warning(
                "auto-resetting compiled session to apply monitor session/provider options (monitor=%s)",
                type(chosen).__name__,
            )
            session.reset()
        with session.use_overlay(overlay):
            chosen.__enter__()
            failure: BaseException | None = None
            try:
                yield PerfContext(stats, chosen)
            except BaseException as error:
                failure = error
                raise
            finally:
                try:
                    if chosen.requires_session_teardown or overlay.brings_options:
                        session.reset()
                        gc.collect()
                finally:
                    chosen.observe(_observation(session, stats))
                    _leave(chosen, failure)
