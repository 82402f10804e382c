"""Numbers about a server in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
KIND = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of one server; used by the thread of its loop only."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        self.restarts = 0
        self.prompt_tokens = 0
        self.generated_tokens = 0

    def count(self, route: str, status: int, seconds: float) -> None:
        key = (route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        buckets = self._buckets.setdefault(route, [0] * (len(BUCKETS_S) + 1))
        place = next((number for number, end in enumerate(BUCKETS_S) if seconds <= end), len(BUCKETS_S))
        buckets[place] += 1
        self._sums[route] = self._sums.get(route, 0.0) + seconds

    def write(self, gauges: Mapping[str, tuple[str, float | None]]) -> str:
        """All numbers as text; a gauge that could not be read is left out."""
        lines = [*_head("winml_requests_total", "counter", "Requests by route and status.")]
        lines += [
            f'winml_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines += _head("winml_request_seconds", "histogram", "Time from the whole request to its whole answer.")
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for end, count in zip((*map(str, BUCKETS_S), "+Inf"), buckets, strict=True):
                total += count
                lines.append(f'winml_request_seconds_bucket{{route="{route}",le="{end}"}} {total}')
            lines.append(f'winml_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'winml_request_seconds_count{{route="{route}"}} {total}')
        counters = {
            "winml_worker_restarts_total": ("Processes with the model that were started again.", self.restarts),
            "winml_prompt_tokens_total": ("Tokens of prompts.", self.prompt_tokens),
            "winml_generated_tokens_total": ("Tokens that were generated.", self.generated_tokens),
        }
        for name, (text, number) in counters.items():
            lines += [*_head(name, "counter", text), f"{name} {number}"]
        for name, (text, value) in gauges.items():
            if value is not None:
                lines += [*_head(name, "gauge", text), f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, text: str) -> Iterable[str]:
    return (f"# HELP {name} {text}", f"# TYPE {name} {kind}")
