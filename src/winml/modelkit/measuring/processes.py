"""The processes of a measurement; the first one starts before the command has imported what it works with.

Nothing but the worker is imported here: Python, numpy and the runtime take longest to load, and they load meanwhile.
"""

from __future__ import annotations

from types import TracebackType

from winml.modelkit.worker.client import Worker

PRELOAD = ("winml.modelkit.session.measure",)


class Processes:
    """Starts workers; the first one starts while the parent still prepares the request."""

    def __init__(self) -> None:
        self._first: Worker | None = Worker(preload=PRELOAD)
        self._python: str | None = None

    def use(self, python: str | None) -> None:
        """Start workers with another environment's interpreter from now on."""
        if python is not None:
            self.close()
        self._python = python

    def start(self) -> Worker:
        worker, self._first = self._first, None
        return worker or Worker(preload=PRELOAD, python=self._python)

    def close(self) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
