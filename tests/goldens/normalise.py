"""Replaces what differs from run to run or from machine to machine by its JSON type, and nothing else.

Times, processes, load, memory, machine and versions become `<int>`, `<float>`, `<str>` or `<bool>`; null stays null,
and a list of such values becomes the list of its distinct forms. Everything else stays exact, apart from the order of
keys.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

NUMBERS = frozenset({
    "seconds", "seconds_left", "throughput", "probe_ms", "ts", "dur", "times", "time", "used_at",
    "process", "pid", "tid", "load", "load_before", "load_after", "pressure_pct", "memory", "utilization",
    # what operators took
    "statistics", "percent_of_total", "before_value", "after_value", "delta", "warmup_samples", "unexplained_pct",
    # rounds of a comparison and what they say
    "rounds", "speedup", "speedup_interval", "load_max", "pressure_max_pct", "base_drift_pct",
})  # fmt: skip
"""Keys whose numbers differ, with all numbers inside them; words in there are kept."""

WHOLE = frozenset({
    # when, where and in what it ran
    "at", "started", "ended", "created", "timestamp", "environment", "machine", "winml", "python", "onnxruntime",
    "numpy", "vendor", "vendor_id", "device_id", "ep_metadata", "limits", "release", "cores",
    # checksums of lines that hold such values, sizes of files that do
    "sum", "in_use_bytes",
    # places in the profile of a runtime; digests of files and requests that hold times or folders
    "op_id", "proof.json", "section.inputs", "key",
})  # fmt: skip
"""Keys whose values differ, with all that is inside them."""

FIRST_LEVEL = frozenset({"trace_diff"})
"""Keys of objects whose whole inside follows from times: only the types of their values are kept."""

BY_TIME = frozenset({"operators", "reasons"})
"""Lists in the order of times: they are put in the order of their text."""

ENDINGS = ("_ms", "_ns", "_us", "_cycles", "_s", "peak_bytes", "peak_memory_bytes", "_per_s")
"""Endings of such keys."""

STEADY = frozenset({"budget_s", "timeout_s", "cool_down_s", "duration_s", "interval_s"})
"""Keys with such an ending that hold what the user or a default said."""

ACCURACY = frozenset({
    "cosine", "scale", "max_abs", "max_rel", "sqnr_db", "exact_sqnr_db", "agreement", "difference", "median", "mean",
    "low", "high", "p05", "p95", "max", "min", "value", "largest",
    "relative", "max_relative", "min_cosine",
})  # fmt: skip
"""Computed on the processor, whose last digits are its own."""

BY_PROCESSOR = frozenset({"reduce_range", "section.reduce_range"})
"""Chosen by what the processor's 8-bit kernels can add up."""

BLOCKED = "_nchwc"
"""Ends the name of a convolution whose channels are padded to the blocks of the processor's vectors."""

CLOCKS = frozenset({"cpu", "wall"})
"""A time where the value is no whole number; a target or a count elsewhere."""

OCCASIONAL = re.compile(
    r"machine load was|programs waited for a CPU|the process waited|runs within a session spread|runs became"
    r"|session medians differ|own wall time changed|the machine was busy|load was|clock|rounds vary"
    r"|kernels of this processor saturate|^(note: )?weights have 7 bits"
)
"""Sentences that are there only when the machine is busy, or on some processors."""

OPERATORS = re.compile(r"(?m)(^ +node +type +avg.*\n)(?:^ {4}.*\n)+")
CHANGED = re.compile(r"(?m)^what changed\n(?:^.*\n)*?^after .*\n")
"""Rows in the order of times; `before-judged` holds the text of a comparison that is always the same."""

NUMBER = re.compile(r"(?<![\w.<:-])[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+)(?![\w.]|,\d)|\d+\.\d+(?=x )")
"""Numbers with a point, or so large that they have commas: measured ones in a text."""

_PACKAGES = ("onnxruntime", "onnxruntime-qnn", "winml-modelkit", "numpy", "onnx", "onnx-ir", "onnxscript", "torch",
             "transformers", "huggingface_hub", "safetensors", "tokenizers")  # fmt: skip


def _versions() -> list[str]:
    found = {".".join(map(str, sys.version_info[:3]))}
    for package in _PACKAGES:
        try:
            found.add(version(package))
        except PackageNotFoundError:
            continue
    return sorted(found, key=len, reverse=True)


_VERSIONS = re.compile("|".join(rf"(?<![\w.]){re.escape(v)}(?![\w]|\.\d)" for v in _versions()))
_TEMPORARY = re.escape(tempfile.gettempdir())
PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"{_TEMPORARY}/winml-[\w-]+"), "<temporary>"),
    # What a quantized model holds follows from what the processor computed in its calibration.
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])"), "<digest>"),
    (re.compile(r"sha256:[0-9a-f]{8,63}(?![0-9a-f])"), "sha256:<digest>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"), "<time>"),
    (re.compile(r"(?<![\w.,])[\d,]+(\.\d+)? (ns|us|µs|ms|s|min|h)\b(?! of)"), r"<n> \2"),
    (re.compile(r"\b\d+m \d+s\b"), "<n> s"),
    (re.compile(r"\.winml-tmp-\d+-[0-9a-f]+"), ".winml-tmp"),
    (re.compile(r"20\d{6}T\d{6}Z"), "<time>"),
    (re.compile(r"\([\d,]+ cycles\)"), "(<n> cycles)"),
    (re.compile(r"(?m)^machine  .*cores.*"), "machine  <machine>"),
    (re.compile(r"(?m)^platform  .*"), "platform  <platform>"),
    (re.compile(r"(?m)^(cpu|gpu|npu) +\w+ +0x\w+"), r"\1 <vendor> <id>"),
    (re.compile(r"ort_profile_\w+[\w-]*"), "ort_profile"),
    (re.compile(r", section\.reduce_range\b|\bsection\.reduce_range, "), ""),
    (re.compile(r'(?<="reduce_range": )(true|false)'), "<bool>"),
    (re.compile(r"(?<=the outputs have a cosine of )\d\.\d+"), "<n>"),
    (re.compile(r"cosine 0\.\d+, largest difference \d[\d.e-]*"), "cosine <n>, largest difference <n>"),
    (re.compile(r"(?<= within )\d\.\d+e-\d+(?= of PyTorch)"), "<n>"),
    (re.compile(r"QNNExecutionProvider_QNNExecutionProvider_\d+"), "QNNExecutionProvider_<hash>"),
)
"""What differs inside sentences."""


EXPLAINED = re.compile(r"(?<=explained  )[\d.,]+|(?<= of )[\d.,]+(?= µs per run)|(?<=per run; )-?[\d.,]+")
"""Times with three digits, which have no point when they are large."""
CUT_ERROR = re.compile(r"(  failed at .*`<folder>/[^`]*`).*")
"""The error in a row of a matrix, which is cut to a width that includes the folder."""


class Normaliser:
    """Knows the folder that a story ran in; everything else is the same for all."""

    def __init__(self, folder: Path, *, measured: bool = True) -> None:
        self._folders = ((str(folder), "<folder>"), (str(Path(__file__).parents[2]), "<repository>"),
                         (sys.prefix, "<environment>"), (sys.base_prefix, "<python>"))  # fmt: skip
        self._measured = measured
        """Whether times are measured here; the numbers of shipped findings are not."""

    def text(self, text: str) -> str:
        """A sentence without folders, times and versions."""
        for folder, name in self._folders:
            text = text.replace(folder, name)
        if self._measured:
            for pattern, name in PATTERNS:
                text = pattern.sub(name, text)
        return _VERSIONS.sub("<version>", text)

    def value(self, value: Any, key: str = "") -> Any:
        """A JSON value with its keys in order."""
        if isinstance(value, dict):
            whole = (
                {"dims": forms(value["dims"])} if str(value.get("name")).endswith(BLOCKED) and "dims" in value else {}
            )
            return {self.text(name): self._found(found, name) for name, found in sorted(value.items())} | whole
        if isinstance(value, list):
            kept = [item for item in value if not (isinstance(item, str) and OCCASIONAL.search(item))]
            kept = [item for item in kept if not (isinstance(item, dict) and item.get("part") in BY_PROCESSOR)]
            return [self.value(item, key) for item in kept]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float) and key in CLOCKS and self._measured:
            return forms(value)
        if isinstance(value, float) and key in ACCURACY and self._measured:
            return forms(value)
        return value

    def _found(self, value: Any, key: str) -> Any:
        if key.removeprefix("library.") == "onnx-ir" and isinstance(value, str):
            return "<version>"  # shipped documents and those of `before` name another one than is installed
        if self._measured and key in FIRST_LEVEL:
            return shallow(value)
        if key in BY_PROCESSOR or (self._measured and key in WHOLE):
            return forms(value)
        if self._measured and key not in STEADY and (key in NUMBERS or key.endswith(ENDINGS)):
            return forms(value, words=self.text)
        if self._measured and key == "partitions" and isinstance(value, dict):
            return {self.text(name): forms(n) if isinstance(n, float) else n for name, n in sorted(value.items())}
        found = self.value(value, key)
        if self._measured and key in BY_TIME and isinstance(found, list):
            return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))
        return found

    def lines(self, text: str) -> list[str]:
        """Text for people: one space between words, for columns are as wide as their numbers."""
        if self._measured:
            text = OPERATORS.sub(r"\1    <operators>\n", text)
            text = CHANGED.sub("<what changed>\n", text)
        kept = [line for line in text.splitlines() if not OCCASIONAL.search(line)]
        lines = [re.sub(r"(?<=\S) {2,}", "  ", self.text(line)).rstrip() for line in kept]
        lines = [CUT_ERROR.sub(r"\1 <cut>", line) for line in lines]
        if not self._measured:
            return lines
        return [NUMBER.sub("<n>", EXPLAINED.sub("<n>", line)) for line in lines]


_REPLACED = ("<int>", "<float>", "<bool>")
"""What was replaced already."""


def forms(value: Any, words: Callable[[str], str] | None = None) -> Any:
    """The JSON types of a value that differs; of a list the distinct ones; `words` says what to do with words."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {name: forms(found, words) for name, found in sorted(value.items())}
    if isinstance(value, list):
        distinct = {json.dumps(form): form for form in (forms(item, words) for item in value)}
        return [distinct[text] for text in sorted(distinct)]
    if isinstance(value, str) and value in _REPLACED:
        return value
    if isinstance(value, str) and words is not None:
        return words(value)
    return f"<{type(value).__name__}>"


def shallow(value: Any) -> Any:
    """The JSON types of an object's values, or of a value."""
    if isinstance(value, dict):
        return {name: None if found is None else f"<{type(found).__name__}>" for name, found in sorted(value.items())}
    return None if value is None else f"<{type(value).__name__}>"
