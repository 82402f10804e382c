"""Which heading of a command's help an option belongs to, and whether `--help` shows it or only `--help-all`.

An option is found here by its long name, so that commands need not say anything about it. A test finds an option or an
argument that is missing, and an entry that no command has.
"""

from __future__ import annotations

from collections.abc import Iterable

import click

from winml.modelkit.core.dataclass import dataclass

OTHER = "Other options"
SHOWN_WHOLE = 10
"""A command with at most so many options shows all of them in one list."""

Headings = dict[str, tuple[str, str]]
"""Heading -> options that `--help` shows, and those that only `--help-all` shows, each in their order."""

HEADINGS: Headings = {
    "Model": ("--model --models --sample --config --recipe --task", "--revision --priority"),
    "Target": (
        "--target --targets --as-built --all",
        "--ep --device --ep-options --trust-options --threads --strict-ep",
    ),
    "Search": (
        "--objective --budget --stop-at --preset",
        "--only --max-discards --space --mixed --reuse --knowledge",
    ),
    "Goal": ("--goal", ""),
    "Precision": (
        "--precision --calibration",
        "--no-quant --fallback-precision --activations --weights --per-channel --symmetric-activations "
        "--symmetric-weights --reduce-range --rules --method --percentile --bias-correction --smooth --block-size "
        "--block-method --block-compute --keep-io --op-types --exclude-op-types --nodes --exclude-nodes --wide-nodes",
    ),
    "Data": ("--data --samples", "--column --processor --length --output-name"),
    "Accuracy": (
        "--reference --max-drop --min-agreement --min-metric --metric",
        "--reference-target --max-metric --judge --task-option --state",
    ),
    "Graph": ("--level --compile", "--no-optimize --enable --disable --opset --allow-unsupported"),
    "Compiling": ("--compiler --embed", "--qnn-sdk-root"),
    "Measuring": (
        "--iterations --sessions --duration --max-seconds --fail-if-slower",
        "--warmup --cool-down --memory --monitor --allow-different --by-position --force "
        "--no-calibration --no-confirm --normal-priority --from",
    ),
    "Generating text": ("--prompt --prompt-tokens --new-tokens", "--runtime"),
    "Operator trace": ("--op-tracing --baseline", "--top-k --trace-format"),
    "Inputs": ("--dim --input-data", "--batch-size --shape --int-range --seed --max-sample"),
    "Export": ("", "--part --exporter --dynamic-axes --input-specs --no-parity --trust-remote-code"),
    "Publishing": ("--feed --run-stamp", "--package-name --keep-local --upload-skip-existing --trust-journal"),
    "Run": ("--jobs", "--max-disk"),
    "Cluster": ("", "--cluster --staging --tls-ca --tls-cert --tls-key --no-tls"),
    "Checks and limits": (
        "",
        "--no-analyze --no-fusions --no-prove --prove-timeout --no-verify --timeout",
    ),
    "Cache": ("", "--use-cache --rebuild --explain-cache"),
    "Output": ("--output --output-dir --resume --overwrite --json --quiet", "--save-outputs"),
}

BY_COMMAND: dict[str, Headings] = {
    "cache gc": {"Limits": ("--max-size --older-than --grace --dry-run", "")},
    "catalog": {"Filters": ("--family --task --target --architectures", "")},
    "compare": {"Generating text": ("--metric --prompt-tokens --new-tokens", "--runtime")},
    "compile": {"Compiling": ("--compiler --embed --list", "")},
    "quantize": {"Accuracy": ("--max-drop --min-agreement --sensitivity --data --task", "--group --metric --judge")},
    "debug": {"Accuracy": ("--reference --layers", "")},
    "completion": {"Output": ("--install --overwrite --json --quiet", "")},
    "dashboard": {"Dashboard": ("--port --open --no-token", "")},
    "ep install": {"Package": ("--version --rebuild", "")},
    "export": {"Export": ("--shape --dynamic-axes --opset", "")},
    "feed": {
        "Feed": ("--feed", ""),
        "Package": ("--model --target --version --file", "--task --run-stamp --package-name --install-extension"),
    },
    "kb": {"Findings": ("--target --status --model --base --candidate --knowledge", "")},
    "matrix": {"Precision": ("--compile --calibration", "--samples --column --processor --seed --max-sample")},
    "node": {"Node": ("--cluster --scheduler --list --target --jobs --name", "--listen")},
    "package": {
        "Evidence": ("--evidence --max-drop --min-metric --accept-unknown --leave-out-failed", "--metric --max-bytes"),
        "Package": ("--license --key --public-key", "--name"),
    },
    "optimize": {"Graph": ("--level --enable --disable --opset --list", "")},
    "support knowledge": {"Findings": ("--family --status --knowledge", "")},
    "support produce": {"Goal": ("--goal", "--knowledge")},
    "support review": {"Review": ("--model --repo --base --unsandboxed", "")},
    "init": {"Project": ("--output --overwrite --yes --json --quiet", "")},
    "report": {"Output": ("--output --markdown --svg --open --overwrite --json --quiet", "")},
    "run": {
        "Input": ("--image --text --audio --prompt --input-data", "--text-pair --labels --max-sample --dim --shape"),
        "Answer": ("--task --top", "--processor --length --output-name --task-option"),
    },
    "serve": {
        "Server": ("--port --no-token", ""),
        "Limits": ("--timeout --queue --max-body", "--workers --stop-timeout"),
        "Answer": ("--task --top", "--processor --length --output-name --task-option"),
    },
    "sys": {"Output": ("--list-ep --list-device", "")},
}
"""Exceptions of a command, or of all sub-commands of a group; what is not here is as in `HEADINGS`."""

ARGUMENTS = {
    "after": "The later trace.",
    "arms": "The model to compare with, then its candidates: ONNX files, build folders or build configs.",
    "before": "The earlier trace: a *_op_trace.json of `winml perf --op-tracing`.",
    "builds": "Build folders of one model, each for another target.",
    "ep": "An execution provider, such as openvino or qnn; `winml sys` lists them.",
    "feed first_argument": "The model that was published, as -m MODEL.",
    "feed push folder": "A build folder, or any other folder.",
    "file": "Session medians as JSON.",
    "finding": "Id of a finding, such as npu-006.",
    "first_argument": "The model, as -m MODEL.",
    "first_arguments": "Models, as -m MODEL.",
    "matrix status folder": "The folder of the run.",
    "package": "A package: a folder or a .zip file.",
    "path": "A skill or a folder of skills.",
    "reported": "A file that a command wrote with -o, or the folder of a search, a matrix, a build or a contribution.",
    "root": "The folder with the runs (default: this one).",
    "rung": "replicated, confirmed, or L1 to L5.",
    "run": "A stored comparison (`winml compare -o`), or the folder of a search.",
    "shell": "bash, zsh, fish or powershell.",
    "support knowledge add file": "A finding as JSON.",
    "support review folder": "The folder of the contribution.",
}
"""Argument, alone or behind its command -> its description; click has no place for it."""


AUTO = "auto, the first of npu, gpu and cpu among the real devices of this machine"

DEFAULTS = {
    "--activations": "by precision and target",
    "--batch-size": "1",
    "--block-size": "32",
    "--dynamic-axes": "all",
    "--keep-io": "--keep-io",
    "--length": "by task, 128 to 384",
    "--level": "basic",
    "--method": "minmax",
    "--opset": "the model's; 20 for an export",
    "--part": "every part",
    "--processor": "the model's",
    "--revision": "main",
    "--rules": "by target",
    "--samples": "all",
    "--symmetric-activations": "by target",
    "--symmetric-weights": "by target",
    "--target": AUTO,
    "--threads": "the runtime's choice",
    "--weights": "by precision and target",
    "build --timeout": "12 hours",
    "catalog --target": "",
    "eval --timeout": "12 hours",
    "export --timeout": "12 hours",
    "feed --target": "all",
    "feed --version": "all that match",
    "kb --target": "",
    "optimize --target": "the result suits every provider",
    "quantize --timeout": "12 hours",
    "support --level": "the recipe of the probe",
    "support --precision": "the recipe of the probe",
    "support --samples": "one set",
    "support --task": "the model's",
    "run --timeout": "12 hours",
    "support --timeout": "3600",
}
"""Option, alone or behind its command or group -> its default, where neither click nor its help has it.

No text: it has none, and the general one does not apply.
"""


@dataclass(frozen=True)
class Entry:
    """The place of an option in the help of its command."""

    heading: str
    rank: int
    common: bool


def arrange(path: str, options: Iterable[str]) -> dict[str, list[tuple[str, bool]]]:
    """The options of a command, such as `feed push`, by heading; each with whether `--help` shows it."""
    found = {option: find_entry(path, option) or Entry(OTHER, 0, True) for option in options}
    arranged: dict[str, list[tuple[str, bool]]] = {}
    for heading in _order_headings(path):
        entries = [(entry, option) for option, entry in found.items() if entry.heading == heading]
        entries.sort(key=lambda pair: (not pair[0].common, pair[0].rank))
        if entries:
            arranged[heading] = [(option, entry.common) for entry, option in entries]
    return arranged


def find_entry(path: str, option: str) -> Entry | None:
    """The place of an option of a command; the closest table that has it decides."""
    for table in (*_own_tables(path), HEADINGS):
        for heading, (common, rare) in table.items():
            names = [*common.split(), *rare.split()]
            if option in names:
                rank = names.index(option)
                return Entry(heading, rank, rank < len(common.split()))
    return None


def find_default(path: str, option: str) -> str | None:
    """The default of an option of a command in words; None when there is none, or click has it."""
    keys = [*(f"{name} {option}" for name in _names(path)), option]
    return next((DEFAULTS[key] for key in keys if key in DEFAULTS), None) or None


def _names(path: str) -> list[str]:
    """A command, then the groups it is in: `feed push`, `feed`."""
    words = path.split()
    return [" ".join(words[:count]) for count in range(len(words), 0, -1)]


def _own_tables(path: str) -> list[Headings]:
    return [BY_COMMAND[name] for name in _names(path) if name in BY_COMMAND]


def _order_headings(path: str) -> list[str]:
    own = [heading for table in _own_tables(path) for heading in table]
    return [*dict.fromkeys(heading for heading in own if heading not in HEADINGS), *HEADINGS, OTHER]


def describe_argument(path: str, argument: click.Argument) -> str:
    """What an argument of a command means; nothing for one that the table does not have."""
    name = argument.name or ""
    return ARGUMENTS.get(f"{path} {name}", ARGUMENTS.get(name, ""))
