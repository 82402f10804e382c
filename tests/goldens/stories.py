"""Every command of the program, with good and bad input: the one table of what the goldens record.

A story is a list of commands that run one after the other in a folder of their own (`inputs.py` fills it). Each story
is recorded twice: with `--json` added to every command, and as text for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from goldens.normalise import forms, shallow


@dataclass(frozen=True)
class Story:
    """Commands as a user types them after `winml`, and what they need."""

    name: str
    commands: tuple[str, ...]
    marks: tuple[str, ...] = ()
    """Markers of the story as a whole: `qnn`, `hf`, `slow`, `dask`, `sandbox`."""
    text_is_slow: bool = False
    """The recording as text runs with the slow tests; the commands are the same."""
    inputs: tuple[str, ...] = ()
    """Inputs that are made for this story alone: names of functions of `inputs.py`."""
    is_measured: bool = True
    """False: no number differs from run to run, all of them are recorded as they are."""
    differs: tuple[str, ...] = ()
    """Keys that differ from run to run in this story alone."""
    hidden: tuple[str, ...] = ()
    """Keys of which only the type is kept in this story."""

    def settle(self, value: Any) -> Any:
        """A JSON value without what differs in this story alone."""
        if isinstance(value, dict):
            return {key: self._settle(key, found) for key, found in value.items()}
        return [self.settle(item) for item in value] if isinstance(value, list) else value

    def _settle(self, key: str, value: Any) -> Any:
        if key in self.hidden:
            return shallow(value)
        return forms(value) if key in self.differs else self.settle(value)

    def settle_text(self, text: str) -> str:
        """Text without what differs in this story alone."""
        if "digest" in self.differs:
            text = re.sub(r"sha256:[0-9a-f]{12,}", "<digest>", text)
        return re.sub(r"\b\d+ B\b", "<n> B", text) if "bytes" in self.differs else text


QUICK = "--sessions 1 --iterations 3 --warmup 1"
BY_SIZE = "--objective size --target cpu --budget 5m --calibration calibration.npz"
COMPARE = "--target cpu --max-seconds 1 --no-calibration --no-confirm --normal-priority"

STORIES: tuple[Story, ...] = (
    Story(
        "program",
        ("--version", "nonsense", "inspct -m conv.onnx", "--nonsense", "perf --nonsense", "trace", "cache nonsense"),
    ),
    Story("sys", ("sys", "sys --list-ep", "sys --list-device"), hidden=("problems",)),
    Story(
        "inspect",
        (
            "inspect -m conv.onnx",
            "inspect -m encoder.onnx",
            "inspect -m int8.onnx",
            "inspect -m open.onnx",
            "inspect -m open.onnx --dim height=8 --dim x[3]=12",
            "inspect -m open.onnx --shape x=2,3,8,8",
            "inspect --sample",
            "inspect -m missing.onnx",
            "inspect -m broken.onnx",
            "inspect -m empty",
            "inspect",
            "inspect -m conv.onnx --sample",
            "inspect -m open.onnx --dim hight=8",
            "inspect -m conv.onnx --shape x=1,3,8,8",
        ),
    ),
    Story(
        "init",
        (
            "init --sample --target cpu --target openvino/cpu --yes -o project",
            "init --sample --yes -o project",
            "init -m conv.onnx --yes",
            "init",
            "init -m missing.onnx --yes -o other",
            "init --sample --target nonsense --yes -o other",
        ),
    ),
    Story("dashboard", ("dashboard missing", "dashboard conv.onnx", "dashboard --port 70000", "dashboard . other")),
    Story("completion", ("completion tcsh", "completion bash --overwrite")),
    Story(
        "export",
        (
            "inspect -m bert",
            "inspect -m t5",
            "export -m bert -o exported",
            "export -m bert -o exported",
            "inspect -m exported/model.onnx",
            "export -m bert -o other --task object-detection",
            "export -m conv.onnx -o other",
            "export -m bert -o other --part encoder",
            "config -m bert --target cpu",
        ),
        marks=("hf", "slow"),
        inputs=("bert", "t5"),
    ),
    Story(
        "parts",
        (
            "build -m t5 --target cpu -o built --no-analyze",
            f"perf -m built --target cpu {QUICK}",
            f"perf -m built/encoder --target cpu {QUICK}",
            "inspect -m built",
            "config -m t5 --part encoder --target cpu -o encoder.json",
        ),
        marks=("hf", "slow"),
        inputs=("t5",),
    ),
    Story(
        "analyze",
        (
            "analyze -m conv.onnx --target cpu --no-fusions -o analysis.json",
            "analyze -m encoder.onnx --target cpu",
            "analyze -m fused.onnx --all --no-fusions",
            "analyze -m conv.onnx --target cpu --no-fusions -o analysis.json",
            "analyze -m open.onnx --target cpu --no-fusions",
            "analyze -m open.onnx --target cpu --no-fusions --dim height=8 --dim width=8",
            "analyze -m missing.onnx --target cpu",
            "analyze -m conv.onnx --target nonsense",
            "analyze -m conv.onnx --target cpu/npu",
            "analyze -m conv.onnx --target cpu --ep-options nonsense=1",
            "analyze -m conv.onnx --target cuda --no-fusions",
        ),
        text_is_slow=True,
    ),
    Story(
        "analyze-npu",
        (
            "analyze -m split.onnx --target qnn/npu --no-fusions",
            "analyze -m conv.onnx --device npu --ep-options soc_model=60",
        ),
        marks=("qnn",),
        text_is_slow=True,
    ),
    Story(
        "config",
        (
            "config -m conv.onnx --target cpu",
            "config -m conv.onnx --target cpu -p int8 --calibration calibration.npz -o config.json",
            "config -m conv.onnx --target cpu -o config.json",
            "config -m conv.onnx --target cpu -o config.json --overwrite --level extended --disable gelu_fusion",
            "config -m conv.onnx --target openvino/cpu -p fp16",
            "config -m open.onnx --target dml --dim height=8 --dim width=8",
            "config -m conv.onnx --target qnn/npu --calibration random --samples 2 --compile",
            "config -m conv.onnx --target cpu -p dynamic --threads 2",
            "config --sample --target cpu -p int4",
            "config --sample -p int8",
            "config -m conv.onnx --target qnn/npu",
            "config -m conv.onnx --target cpu -p int9",
            "config -m conv.onnx --target cpu -p int8 --calibration missing.npz",
            "config -m conv.onnx --target cpu --enable gelufusion",
            "config -m missing.onnx --target cpu",
            "config -m broken.onnx --target cpu",
            "config -m conv.onnx --target cpu --ep cpu",
        ),
    ),
    Story(
        "build",
        (
            "build -m conv.onnx --target cpu -o plain",
            "build -m conv.onnx --target cpu -o plain",
            "build -m conv.onnx --target cpu -p int8 --calibration calibration.npz -o int8 --explain-cache",
            "build -m conv.onnx --target cpu -p int8 --calibration calibration.npz -o again --explain-cache "
            "--no-analyze",
            "inspect -m int8",
            f"perf -m int8 {QUICK} --threads 1",
            "build -m conv.onnx --target cpu -p fp16 -o plain",
            "build -m conv.onnx --target cpu -p fp16 --use-cache --no-analyze --no-prove",
            "build -c int8/build_config.json -o configured --no-analyze",
            "build -c unknown-key.json -o wrong",
            "build -c missing.json -o wrong",
            "build -c broken.json -o wrong",
            "build -m conv.onnx --target cpu",
            "build -m conv.onnx --target qnn/npu -p int8 -o wrong",
            "build -m broken.onnx --target cpu -o wrong",
            "analyze -m int8 --no-fusions",
        ),
        text_is_slow=True,
    ),
    Story(
        "build-npu",
        (
            "build -m conv.onnx --target qnn/npu -p int8 --calibration calibration.npz --compile -o npu",
            f"perf -m npu {QUICK}",
            f"perf -m npu --target cpu {QUICK}",
            "inspect -m npu",
        ),
        marks=("qnn",),
        text_is_slow=True,
        differs=("digest", "parent", "bytes", "file_bytes", "files", "objects"),
    ),
    Story(
        "optimize",
        (
            "optimize --list",
            "optimize -m conv.onnx -o basic.onnx --target cpu",
            "optimize -m encoder.onnx -o extended.onnx --target cpu --level extended",
            "optimize -m conv.onnx -o newer.onnx --target cpu --opset 22 --level none --enable conv_bn_fusion",
            "optimize -m conv.onnx -o basic.onnx --target cpu",
            "optimize -m conv.onnx -o none.onnx --target cpu --level none --no-verify",
            "optimize -m conv.onnx -o wrong.onnx --enable nonsense",
            "optimize -m conv.onnx -o wrong.onnx --level nonsense",
            "optimize -m missing.onnx -o wrong.onnx",
            "optimize -m conv.onnx",
            "optimize -m conv.onnx -o wrong.onnx --opset 99",
        ),
        text_is_slow=True,
    ),
    Story(
        "quantize",
        (
            "quantize -m conv.onnx -o int8.q.onnx --target cpu -p int8 --calibration calibration.npz",
            "quantize -m encoder.onnx -o dynamic.onnx --target cpu -p dynamic",
            "quantize -m encoder.onnx -o int4.onnx --target cpu -p int4 --block-size 32",
            "quantize -m conv.onnx -o fp16.onnx --target cpu -p fp16",
            "quantize -m conv.onnx -o int8.q.onnx --target cpu -p int8 --calibration calibration.npz",
            "quantize -m conv.onnx -o wrong.onnx --target cpu -p int8",
            "quantize -m conv.onnx -o wrong.onnx --target cpu -p int8 --calibration missing.npz",
            "quantize -m conv.onnx -o wrong.onnx --target cpu -p int8 --calibration other.npz",
            "quantize -m conv.onnx -o wrong.onnx --target cpu -p nonsense",
            "quantize -m conv.onnx -o wrong.onnx --target cpu -p int8 --calibration calibration.npz --nodes nonsense",
        ),
        text_is_slow=True,
    ),
    Story(
        "quantize-more",
        (
            "quantize -m conv.onnx -o w8a16.onnx --target cpu -p w8a16 --calibration calibration.npz --per-channel",
            "quantize -m conv.onnx -o w4a16.onnx --target cpu -p w4a16 --calibration calibration.npz",
            "quantize -m conv.onnx -o int16.onnx --target cpu -p int16 --calibration calibration.npz",
            "quantize -m conv.onnx -o npu.onnx --target qnn/npu --calibration calibration.npz",
            "quantize -m conv.onnx -o entropy.onnx --target cpu -p int8 --calibration calibration.npz --method entropy",
            "quantize -m conv.onnx -o random.onnx --target cpu -p int8 --calibration random --samples 2 --no-verify",
            "quantize --sample -o sample.onnx --target cpu",
        ),
        marks=("qnn", "slow"),
    ),
    Story(
        "compile",
        ("compile --list --target cpu", "compile -m conv.onnx --target cpu -o wrong.onnx"),
    ),
    Story(
        "compile-npu",
        (
            "compile --list --target qnn/npu",
            "compile -m conv.onnx --target qnn/npu -o compiled.onnx",
            "compile -m conv.onnx --target qnn/npu -o compiled.onnx",
            "inspect -m compiled.onnx",
            f"perf -m compiled.onnx --target cpu {QUICK}",
            "compile -m conv.onnx -m split.onnx --target qnn/npu --output-dir shared --compiler ort",
            "compile -m conv.onnx --target qnn/npu -o wrong.onnx --compiler nonsense",
            "compile -m conv.onnx --target qnn/npu -o wrong.onnx --compiler qairt",
            "compile -m missing.onnx --target qnn/npu -o wrong.onnx",
            "compile -m conv.onnx -m split.onnx --target qnn/npu -o wrong.onnx",
        ),
        marks=("qnn", "slow"),
        differs=("digest", "parent", "bytes", "file_bytes", "files", "objects"),
    ),
    Story(
        "perf",
        (
            f"perf -m conv.onnx --target cpu {QUICK} -o perf.json",
            f"perf -m conv.onnx --target cpu {QUICK} --op-tracing basic -o traced.json --trace-format perfetto",
            f"perf -m conv.onnx --target cpu {QUICK} --op-tracing detail --baseline traced_op_trace.json",
            "perf -m encoder.onnx --target cpu --sessions 1 --iterations 3000 --int-range 0:9 --memory --monitor",
            f"perf -m open.onnx --target cpu {QUICK} --input-data open.npz",
            f"perf -m open.onnx --target cpu {QUICK} --dim height=8 --dim width=8 --batch-size 2",
            "perf -m conv.onnx --target cpu --sessions 3 --iterations 3 --warmup 1",
            f"perf --sample --target cpu {QUICK} --threads 1",
            f"perf -m conv.onnx --target cpu {QUICK} -o perf.json",
            f"perf -m open.onnx --target cpu {QUICK}",
            f"perf -m open.onnx --target cpu {QUICK} --dim hight=8",
            f"perf -m missing.onnx --target cpu {QUICK}",
            f"perf -m broken.onnx --target cpu {QUICK}",
            f"perf -m crashes.onnx --target cpu {QUICK}",
            f"perf -m conv.onnx --target cuda {QUICK}",
            f"perf -m conv.onnx --target cpu {QUICK} --input-data open.npz",
            f"perf -m conv.onnx --target cpu {QUICK} --ep-options nonsense=1",
            f"perf -m conv.onnx --target cpu {QUICK} --baseline missing.json",
            "perf -m conv.onnx --target cpu --iterations 0",
            "trace diff traced_op_trace.json traced_op_trace.json",
            "trace diff traced_op_trace.json missing.json",
            "trace diff traced_op_trace.json perf.json",
        ),
        differs=("value",),
        text_is_slow=True,
    ),
    Story(
        "perf-npu",
        (
            f"perf -m int8.onnx --target qnn/npu {QUICK} --ep-options soc_model=60",
            f"perf -m split.onnx --ep qnn {QUICK} --op-tracing basic -o split.json",
            f"perf -m conv.onnx --device npu {QUICK} --op-tracing basic -o conv.json",
            "perf -m conv.onnx --device npu --sessions 1 --op-tracing detail",
            "trace diff conv_op_trace.json split_op_trace.json -o diff.json",
            f"perf -m split.onnx --target qnn/npu {QUICK} --strict-ep",
            f"perf -m conv.onnx --target qnn/npu {QUICK} --ep-options soc_modl=60",
        ),
        marks=("qnn",),
        differs=("value",),
        hidden=("changes", "groups"),
        text_is_slow=True,
    ),
    Story(
        "compare",
        (
            f"compare conv.onnx conv.onnx {COMPARE} -o same.json",
            "compare --from same.json",
            f"compare deep.onnx conv.onnx {COMPARE} --max-seconds 40 --allow-different -o faster.json",
            "compare --from faster.json",
            "compare --from compare.json --fail-if-slower 5",
            f"compare conv.onnx encoder.onnx {COMPARE}",
            f"compare conv.onnx missing.onnx {COMPARE}",
            f"compare conv.onnx {COMPARE}",
            f"compare conv.onnx crashes.onnx {COMPARE}",
            "compare --from missing.json",
            "compare --from calibration.npz",
            "compare --from space.json",
            "compare conv.onnx conv.onnx --targets cpu,cuda",
        ),
        marks=("slow",),
        inputs=("before",),
        differs=("reason", "gain_pct", "interval_pct"),
    ),
    Story(
        "eval",
        (
            "eval --sample --target cpu --samples 40",
            "eval --sample --target cpu --samples 40 --reference {sample} -o eval.json --save-outputs outputs.npz",
            "eval -m int8.onnx --reference conv.onnx --data random --samples 3 --target cpu --min-agreement 0.5",
            "eval --sample --target cpu --samples 40 --min-metric 1.0 --judge value",
            "eval -m conv.onnx --data missing.npz --target cpu --task image-classification",
            "eval -m conv.onnx --data calibration.npz --target cpu",
            "eval -m conv.onnx --data calibration.npz --target cpu --task nonsense",
            "eval -m conv.onnx --data random --target cpu --max-drop 0.1",
            "eval -m missing.onnx --data random --target cpu",
        ),
        text_is_slow=True,
    ),
    Story(
        "debug",
        (
            "debug -m int8.onnx --reference conv.onnx --data random --samples 2 --target cpu",
            "debug -m int8.onnx --reference int8.onnx --data random --target cpu",
            "debug -m int8.onnx --reference missing.onnx --data random --target cpu",
            "debug -m int8.onnx --reference conv.onnx --data missing.npz --target cpu",
            "debug -m int8.onnx --reference conv.onnx --target cpu",
        ),
        differs=("sqnr_db", "cosine", "not_finite", "summary"),
    ),
    Story(
        "autoconfig",
        (
            f"autoconfig -m conv.onnx {BY_SIZE} --space space.json -o search",
            f"autoconfig -m conv.onnx {BY_SIZE} --space space.json -o search",
            f"autoconfig -m conv.onnx {BY_SIZE} --space space.json -o search --resume",
            f"autoconfig -m fused.onnx {BY_SIZE} --space space.json -o search --resume",
            f"autoconfig -m conv.onnx {BY_SIZE} --space space.json -o reused --reuse search",
            f"autoconfig -m conv.onnx {BY_SIZE} --space unknown-knob.json -o wrong",
            f"autoconfig -m conv.onnx {BY_SIZE} --space missing.json -o wrong",
            "autoconfig -m conv.onnx --target cpu --preset cpuu -o wrong",
            "autoconfig -m conv.onnx --target cpu --budget soon -o wrong",
            "autoconfig -m conv.onnx --target cpu --only h1 -o wrong",
            "autoconfig -m conv.onnx --target cpu --resume -o wrong",
            "autoconfig -m conv.onnx --target cpu --objective placement -o wrong",
            "autoconfig -m missing.onnx --target cpu -o wrong",
            "autoconfig -m conv.onnx --target cpu",
            "kb draft search",
        ),
        marks=("slow",),
    ),
    Story(
        "autoconfig-sweep",
        (
            f"autoconfig --models list.txt {BY_SIZE} --space fp16.json -o sweep",
            f"autoconfig --models list.txt {BY_SIZE} --space fp16.json -o sweep --resume",
            f"autoconfig --models missing.txt {BY_SIZE} -o wrong",
            f"autoconfig --models empty.txt {BY_SIZE} -o wrong",
        ),
        marks=("slow",),
    ),
    Story(
        "autoconfig-npu",
        (
            "autoconfig -m conv.onnx --target qnn/npu --calibration calibration.npz --space npu-space.json "
            "--budget 5m -o search",
            "autoconfig -m conv.onnx --target qnn/npu --objective latency -o wrong",
        ),
        marks=("qnn", "slow"),
    ),
    Story(
        "matrix",
        (
            "matrix plan -m org/bert --task fill-mask --run-stamp s1",
            "matrix plan --models models.txt --run-stamp s1 --compile",
            "matrix run --models models.txt --targets cpu,dml --no-analyze --run-stamp 20260101 "
            "--feed folder:feed --keep-local -o run",
            "matrix status run",
            "matrix run --models models.txt --targets cpu,dml --no-analyze --run-stamp 20260101 "
            "--feed folder:feed --resume -o run",
            "matrix run --models models.txt --targets cpu,dml --no-analyze --run-stamp 20260101 "
            "--feed folder:feed --resume -o elsewhere",
            "matrix run -m broken.onnx -m conv.onnx --targets cpu --no-analyze --run-stamp s2 -o partly",
            "matrix status partly",
            "matrix status missing",
            "matrix run -m conv.onnx --targets cpu --run-stamp 20260101 -o run",
            "matrix run --models empty.txt --run-stamp s1 -o wrong",
            "matrix run --models missing.txt --run-stamp s1 -o wrong",
            "matrix run -m conv.onnx --targets nonsense --run-stamp s1 -o wrong",
            "matrix run -m conv.onnx --targets cpu --run-stamp s1 --feed ftp:x -o wrong",
            "feed list --feed folder:feed",
        ),
        marks=("slow",),
        differs=("bytes", "digest", "reference", "sent_bytes", "in_use_bytes"),
    ),
    Story(
        "feed",
        (
            "feed push plain --feed folder:new-feed -m org/conv --run-stamp 20260101",
            "feed push plain --feed folder:new-feed -m org/conv --run-stamp 20260101",
            "feed push texts --feed folder:new-feed --package-name texts --version 1.0.0",
            "feed push texts --feed new-feed -m org/texts --task fill-mask --run-stamp s2 --target qnn/npu",
            "feed list --feed folder:new-feed",
            "feed list --feed folder:new-feed -m org/conv",
            "feed push texts --feed folder:new-feed --package-name texts --version 1.0.0",
            "feed push empty --feed folder:new-feed --package-name texts --version 1.0.1",
            "feed verify --feed folder:new-feed -m org/conv",
            "feed pull --feed folder:new-feed -m org/conv -o pulled",
            "feed pull --feed folder:new-feed -m org/conv -o pulled",
            "feed pull --feed folder:new-feed -m org/conv --file cpu_cpu/*.json -o some",
            "feed pull --feed folder:new-feed --package-name texts --version 1.0.0 -o texts-again",
            "feed pull --feed folder:new-feed -m org/conv --file nonsense -o none",
            "feed pull --feed folder:new-feed -m org/missing -o none",
            "feed pull --feed folder:missing -m org/conv -o none",
            "feed list --feed ftp:nonsense",
            "feed push missing --feed folder:new-feed -m org/conv",
            "feed push other.npz --feed folder:new-feed --package-name other --version 1.0.0",
            "feed verify --feed folder:new-feed -m org/conv --run-stamp s9",
        ),
        inputs=("before",),
    ),
    Story(
        "cache",
        (
            "cache list",
            "cache size",
            "optimize -m conv.onnx -o o.onnx --target cpu",
            "build -m conv.onnx --target cpu -o built --no-analyze --no-prove",
            "cache list",
            "cache size",
            "cache verify",
            "cache gc --dry-run --grace 0s --max-size 1K",
            "cache gc --max-size 10G",
            "cache gc --grace 0s --older-than 0s",
            "cache list",
            "cache gc --max-size nonsense",
            "cache gc --older-than soon",
        ),
    ),
    Story(
        "catalog",
        (
            "catalog --family bert",
            "catalog --task object-detection",
            "catalog --family whisper --target cpu",
            "catalog --family bertt",
            "catalog --task nonsense",
            "catalog --target nonsense",
            "catalog --architectures --family sam_mask_decoder",
            "catalog --architectures --family samm",
        ),
        is_measured=False,
    ),
    Story(
        "ep",
        ("ep list", "ep options", "ep options qnn", "ep options nonsense", "ep install nonsense", "ep remove openvino"),
        is_measured=False,
    ),
    Story(
        "kb",
        (
            "kb list",
            "kb list --target qnn/npu --status confirmed",
            "kb list --target cpu",
            "kb show gpu-001",
            "kb show cpu-101",
            "kb show npu-999",
            "kb check",
            "kb judge sessions.json",
            "kb judge sessions.json --model microsoft/resnet-18 --candidate h1",
            "kb judge sessions.json --base h99",
            "kb judge missing.json",
            "kb judge space.json",
            "kb promote npu-006 confirmed",
            "kb promote npu-006 nonsense",
            "kb report -o report.html",
            "kb report -o report.html",
            "kb draft missing",
            "kb draft space.json",
            "kb list --status nonsense",
            "kb check --knowledge broken-knowledge",
            "kb replay npu-999",
        ),
        is_measured=False,
    ),
    Story("kb-replay", ("kb replay npu-006", "kb show npu-006", "kb check"), marks=("qnn",), text_is_slow=True),
    Story(
        "node",
        (
            "node --list --cluster nonsense",
            "node --list --cluster dask://192.0.2.1:9 --tls-ca missing.pem",
            "node",
        ),
        marks=("dask",),
    ),
    Story("node-unreachable", ("node --list --cluster dask://127.0.0.1:9 --no-tls",), marks=("dask", "slow")),
    Story("skill", ("skill check", "skill check skills", "skill check missing")),
    Story(
        "support-knowledge",
        (
            "support knowledge list --family bart",
            "support knowledge list --status refuted",
            "support knowledge list --family marion",
            "support knowledge show bart-001",
            "support knowledge show bart-999",
            "support knowledge check",
            "support knowledge add finding.json",
            "support knowledge add finding.json",
            "support knowledge show bart-900",
            "support knowledge add space.json",
            "support inputs -m conv.onnx -o inputs.npz",
            "support inputs -m open.onnx --dim height=8 --dim width=8 --samples 2 -o rows.npz",
            "support inputs -m open.onnx -o wrong.npz",
            "support inputs -m conv.onnx -o inputs.npz",
            "support review missing",
            "support review texts",
            "support probe -m missing.onnx",
            "support produce -m missing.onnx -o wrong",
        ),
        is_measured=False,
    ),
    Story(
        "support",
        (
            "support probe -m conv.onnx --target cpu",
            "support produce -m wide.onnx -p dynamic --goal L2 -o contribution",
            "support review contribution -m wide.onnx",
            "support produce -m conv.onnx -p dynamic --goal L1 -o nothing",
            "support review nothing -m conv.onnx",
            "support produce -m wide.onnx -m broken.onnx -p dynamic --goal L0 -o several",
            "support produce -m wide.onnx -o contribution",
            "support produce -m wide.onnx --recipe nonsense -o wrong",
        ),
        differs=("files", "writes", "result", "log"),
        marks=("slow", "sandbox"),
    ),
    Story(
        "before-documents",
        (
            "cache list",
            "inspect -m plain",
            f"perf -m int8 {QUICK} --threads 1",
            "build -c config.json -o built --no-analyze --no-prove",
            f"perf -m tiny.onnx --target cpu {QUICK} --op-tracing basic --baseline perf_op_trace.json",
            "cache verify",
            "feed pull --feed folder:feed -m org/tiny -o pulled",
            "inspect -m pulled/cpu_cpu",
            "feed push plain --feed folder:feed -m org/tiny --run-stamp 20260102",
            "matrix status matrix",
        ),
        differs=("neighbour",),
        inputs=("before",),
        text_is_slow=True,
    ),
    Story(
        "before-judged",
        (
            "compare --from compare.json",
            "trace diff perf_op_trace.json small_op_trace.json",
            "kb show cpu-draft-dcd93bb6",
            "kb check",
            "kb promote cpu-draft-dcd93bb6 replicated",
            "kb draft compare.json",
            "feed list --feed folder:feed",
            "feed list --feed folder:feed -m org/tiny",
            "feed verify --feed folder:feed -m org/tiny",
        ),
        inputs=("before",),
        is_measured=False,
    ),
    Story(
        "report",
        (
            "report perf.json",
            "report compare.json --markdown",
            "report perf_op_trace.json small_op_trace.json -o traces.html",
            "report search -o search.html",
            "report stopped-search --markdown",
            "report sweep -o sweep.html",
            "report contribution -o contribution.html",
            "report perf.json compare.json",
            "report perf.json --svg nonsense",
            "report tiny.onnx",
            "report own",
            "report missing.json",
        ),
        inputs=("before",),
        differs=("bytes",),
    ),
    Story(
        "before-parts",
        (f"perf -m parts --target cpu {QUICK}", "inspect -m parts", f"perf -m parts/encoder --target cpu {QUICK}"),
        inputs=("before",),
        marks=("slow",),
    ),
    Story(
        "before-search",
        (
            f"autoconfig -m tiny.onnx {BY_SIZE} --space space.json -o search --resume",
            f"autoconfig -m tiny.onnx {BY_SIZE} --space space.json -o stopped-search --resume",
            f"autoconfig -m tiny.onnx {BY_SIZE} --space space.json -o reused --reuse search",
            f"autoconfig --models list.txt {BY_SIZE} --space space.json -o sweep --resume",
            f"perf -m search/champion {QUICK}",
        ),
        inputs=("before",),
        marks=("slow",),
    ),
    Story(
        "before-matrix",
        (
            "matrix run --models models.txt --targets cpu,dml --no-analyze --run-stamp 20260101 "
            "--feed folder:matrix-feed --keep-local --resume -o matrix",
            "matrix status matrix",
            "matrix run --models models.txt --targets cpu,dml --no-analyze --run-stamp 20260101 "
            "--feed folder:matrix-feed --resume -o elsewhere",
            "feed verify --feed folder:matrix-feed -m tiny",
        ),
        inputs=("before",),
        marks=("slow",),
        differs=("bytes", "digest", "reference", "sent_bytes", "in_use_bytes"),
    ),
    Story(
        "before-contribution",
        ("support review contribution -m wide.onnx", "support review contribution -m tiny.onnx"),
        inputs=("before",),
        marks=("slow", "sandbox"),
    ),
)
"""The table."""
