"""Several models in one context: the flags that begin and end the sharing, and the process it happens in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from winml.modelkit.building.compile.base import CompileJob, Share
from winml.modelkit.building.compile.result import CompileCost
from winml.modelkit.worker.client import Worker

_ENTRIES: dict[Share, dict[str, str]] = {
    "alone": {},
    "share": {"ep.share_ep_contexts": "1"},
    "last": {"ep.share_ep_contexts": "1", "ep.stop_share_ep_contexts": "1"},
}


def share_entries(share: Share) -> dict[str, str]:
    """Session config entries for a model's part in the sharing."""
    return dict(_ENTRIES[share])


class SharedContext:
    """A process that compiles a known number of models, the last of which ends the sharing.

    What is shared lives in the EP inside that process. A model that fails leaves it in an unknown state, so the process
    ends with this object, and the other models are compiled again in a new one.
    """

    def __init__(self, start: Callable[[], Worker], *, models: int, timeout_s: float | None = None) -> None:
        self._start = start
        self._left = models
        self._alone = models == 1
        self._timeout_s = timeout_s
        self._worker: Worker | None = None

    def compile(self, job: CompileJob) -> CompileCost:
        """Compile the next model; its error, or the death of the process, is raised."""
        assert self._worker is not None
        self._left -= 1
        share: Share = "alone" if self._alone else "share" if self._left else "last"
        return self._worker.ask(
            CompileCost,
            "compile.model",
            replace(job, share=share),
            timeout_s=self._timeout_s,
            what=f"compiling `{job.model.name}`",
        )

    def __enter__(self) -> SharedContext:
        self._worker = self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
