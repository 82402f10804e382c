"""THE table of execution providers: what they are called, which devices they drive, what installs them, what they take.

Everything that differs between EPs and is known without asking one is here as data.
Option lists come from the EPs' documentation and, for QNN, from the strings of its library (2.7.0).
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.target import Device

System = Literal["Linux", "Windows", "Darwin"]
PackageKind = Literal["builtin", "plugin", "bundled", "windowsml"]
OptionType = Literal["int", "ints", "bool", "choice", "text", "path", "json"]
Trusted = Literal["document", "command_line"]

LIST = "`winml ep options` lists the options of every provider"
"""Where a user finds the names."""


@dataclass(frozen=True)
class Package:
    """A distribution that installs an EP.

    `plugin`: a library registered with the installed onnxruntime. `bundled`: its own build of onnxruntime, which
    cannot share an environment with the plain one. `windowsml`: the catalog of Windows ML.
    """

    distribution: str
    module: str
    kind: PackageKind
    systems: tuple[System, ...]
    machines: tuple[str, ...] = ()
    """Machine names as `platform.machine()` gives them, in lower case; empty means all."""
    extra: str | None = None
    """The extra of winml-modelkit that installs it."""
    tracer: str | None = None
    """The distribution that traces its operators, installed beside it in the version of the libraries inside it."""


@dataclass(frozen=True)
class Option:
    """A provider option: EPs ignore what they do not know, so we check names and values."""

    type: OptionType
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    refused: str | None = None
    """Why a user may not set it; None when they may."""
    trust: Trusted = "command_line"
    """Who may set it. `document`: it chooses among computations, and names neither a library nor a file, nor makes
    the EP write one. A type `json` is data in a document as text; a file is named on the command line only."""

    def allows_in_document(self, value: str) -> bool:
        """Whether a file that came from others may choose this value."""
        if self.trust == "command_line" or self.refused is not None:
            return False
        return self.type != "json" or value.lstrip().startswith("{")


BOOL = Option("bool", trust="document")
COUNT = Option("int", low=0, trust="document")
TEXT = Option("text", trust="document")
PATH = Option("path", trust="command_line")
NAME = Option("text", trust="command_line")
"""Text that is part of a file's name, a key, or a list of libraries."""
WRITES = Option("bool", trust="command_line")
"""A switch that makes the EP write files, or skip a check that keeps it from crashing."""


def _choice(*choices: str, trust: Trusted = "document") -> Option:
    return Option("choice", choices=choices, trust=trust)


@dataclass(frozen=True)
class Int8:
    """The 8-bit types an EP is fastest with, and the conventions it wants."""

    activation_type: str = "uint8"
    weight_type: str = "int8"
    per_channel: bool = True
    rules: str = "ort"


@dataclass(frozen=True)
class EPInfo:
    """One row of the table."""

    name: str
    full_name: str
    devices: tuple[Device, ...]
    """Best first: the device meant when only the EP is named."""
    packages: tuple[Package, ...]
    aliases: tuple[str, ...] = ()
    libraries: dict[System, str] = field(default_factory=dict)
    vendors: tuple[str, ...] = ()
    """Vendors of hardware it drives; empty means any."""
    native_quantization: bool = False
    """It quantizes by itself from floats, so a build hands it an unquantized model."""
    saves_graph: bool = False
    """It runs nodes as kernels, so that the runtime can save the graph it executes; compiled nodes cannot be saved."""
    can_compile: bool = False
    uncompilable: tuple[str, ...] = ()
    """Precisions it cannot compile."""
    device_choosing: tuple[str, ...] = ()
    """Options by which a model is compiled for another device than that of this machine."""
    border_option: str | None = None
    """The option by which it leaves quantizing a model's own inputs and outputs to the CPU, unless that is 0."""
    side_files: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Options that make it write a file when it compiles: the option for its folder, and its name."""
    options: dict[str, Option] = field(default_factory=dict)
    threads_option: str | None = None
    """The option for its own threads; the runtime's setting does not reach them."""
    device_options: dict[Device, dict[str, str]] = field(default_factory=dict)
    """Options that say which device is meant; a user may not contradict them."""
    simulated_on: dict[Device, tuple[tuple[System, str], ...]] = field(default_factory=dict)
    simulator_options: dict[str, str] = field(default_factory=dict)
    """Options a simulated device needs, set when the user does not, and shown."""
    auto_precision: dict[Device, str] = field(default_factory=dict)
    """What precision `auto` means per device; a device that is absent stays unquantized."""
    int8: Int8 = field(default_factory=Int8)
    """What precision `int8` means."""
    unquantized: dict[Device, str] = field(default_factory=dict)
    """Devices that must not be handed a quantized model, with the reason."""


_WINDOWS: tuple[System, ...] = ("Windows",)
_LINUX_WINDOWS: tuple[System, ...] = ("Linux", "Windows")
_X64 = ("x86_64", "amd64")


def _windowsml() -> Package:
    return Package("windowsml", "windowsml", "windowsml", _WINDOWS)


_QNN_OPTIONS: dict[str, Option] = {
    "backend_type": _choice("htp", "gpu"),
    "backend_path": PATH,
    "soc_model": Option("ints", low=0, trust="document"),
    "htp_arch": Option("ints", choices=("0", "68", "69", "73", "75", "79", "81"), trust="document"),
    "vtcm_mb": Option("ints", low=0, high=64, trust="document"),
    "htp_performance_mode": _choice(
        "burst", "balanced", "default", "high_performance", "high_power_saver", "low_balanced", "low_power_saver",
        "power_saver", "extreme_power_saver", "sustained_high_performance",
    ),
    "htp_graph_finalization_optimization_mode": Option("int", low=0, high=3, trust="document"),
    "enable_htp_fp16_precision": BOOL,
    "enable_htp_fp16_clamp_overflow": BOOL,
    "htp_bf16_enable": BOOL,
    "offload_graph_io_quantization": BOOL,
    "qnn_context_priority": _choice("low", "normal", "normal_high", "high"),
    "rpc_control_latency": COUNT,
    "device_id": COUNT,
    "profiling_level": _choice("off", "basic", "detailed", "optrace", trust="command_line"),
    "profiling_file_path": PATH,
    "enable_framework_op_trace": WRITES,
    "framework_op_trace_dir": PATH,
    "dump_json_qnn_graph": WRITES,
    "json_qnn_graph_dir": PATH,
    "dump_qnn_ir_dlc": WRITES,
    "dump_qnn_ir_dlc_dir": PATH,
    "dump_qnn_ep_input_graph": WRITES,
    "dump_qnn_ep_input_graph_dir": PATH,
    "qnn_saver_path": Option("path", refused="the saver backend does not compute; its outputs are zeros"),
    "qnn_ir_backend_path": Option("path", refused="the IR backend writes files and cannot run a model"),
    "op_packages": NAME,
    "skip_backend_op_validation": WRITES,
    "skip_qnn_version_check": WRITES,
    "enable_htp_prepare_only": Option("bool", refused="it compiles without running; `winml compile` does that"),
    "enable_htp_prepare_and_load": BOOL,
    "enable_htp_spill_fill_buffer": BOOL,
    "enable_htp_shared_memory_allocator": BOOL,
    "enable_htp_graph_splitting": BOOL,
    "enable_htp_monolithic_lstm": BOOL,
    "enable_block_quant_weight_optimization": BOOL,
    "enable_vtcm_backup_buffer_sharing": BOOL,
    "htp_share_resource_optimization": BOOL,
    "extended_udma": BOOL,
    "disable_file_mapped_weights": BOOL,
    "op_affinity": Option("json", trust="document"),
    "htp_reused_io_limit_mb": COUNT,
    "htp_graph_splitting_num_prepare_threads": COUNT,
    "num_graph_prepare_threads": COUNT,
    "enable_dx12_shared_memory_allocator": BOOL,
    "genie_log_level": Option("text", refused="winml does not run Genie models"),
}  # fmt: skip

_OPENVINO_OPTIONS: dict[str, Option] = {
    "device_type": _choice("CPU", "GPU", "GPU.0", "GPU.1", "NPU"),
    "precision": _choice("FP32", "FP16", "ACCURACY"),
    "num_of_threads": Option("int", low=1, trust="document"),
    "num_streams": Option("int", low=1, trust="document"),
    "cache_dir": PATH,
    "load_config": PATH,
    "enable_opencl_throttling": BOOL,
    "enable_qdq_optimizer": BOOL,
    "disable_dynamic_shapes": BOOL,
    "model_priority": _choice("LOW", "MEDIUM", "HIGH", "DEFAULT"),
    "reshape_input": TEXT,
    "layout": TEXT,
}

_CUDA_OPTIONS: dict[str, Option] = {
    "device_id": COUNT,
    "gpu_mem_limit": COUNT,
    "arena_extend_strategy": _choice("kNextPowerOfTwo", "kSameAsRequested"),
    "cudnn_conv_algo_search": _choice("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
    "do_copy_in_default_stream": BOOL,
    "cudnn_conv_use_max_workspace": BOOL,
    "cudnn_conv1d_pad_to_nc1d": BOOL,
    "enable_cuda_graph": BOOL,
    "prefer_nhwc": BOOL,
    "use_tf32": BOOL,
    "use_ep_level_unified_stream": BOOL,
}

_TENSORRT_RTX_OPTIONS: dict[str, Option] = {
    "device_id": COUNT,
    "nv_max_workspace_size": COUNT,
    "nv_max_shared_mem_size": COUNT,
    "nv_dump_subgraphs": WRITES,
    "nv_detailed_build_log": WRITES,
    "enable_cuda_graph": BOOL,
    "nv_profile_min_shapes": TEXT,
    "nv_profile_max_shapes": TEXT,
    "nv_profile_opt_shapes": TEXT,
    "nv_multi_profile_enable": BOOL,
    "nv_use_external_data_initializer": BOOL,
    "nv_runtime_cache_path": PATH,
}

_MIGRAPHX_OPTIONS: dict[str, Option] = {
    "device_id": COUNT,
    "migraphx_fp16_enable": BOOL,
    "migraphx_bf16_enable": BOOL,
    "migraphx_fp8_enable": BOOL,
    "migraphx_int8_enable": BOOL,
    "migraphx_int8_calibration_table_name": NAME,
    "migraphx_exhaustive_tune": BOOL,
    "migraphx_mem_limit": COUNT,
}

_VITISAI_OPTIONS: dict[str, Option] = {
    "config_file": PATH,
    "cache_dir": PATH,
    "cache_key": NAME,
    "target": NAME,
    "xclbin": PATH,
    "xlnx_enable_py3_round": BOOL,
    "log_level": _choice("info", "warning", "error", "fatal"),
    "encryption_key": NAME,
}

_WEBGPU_OPTIONS: dict[str, Option] = {
    "preferredLayout": _choice("NCHW", "NHWC"),
    "enableGraphCapture": BOOL,
    "dawnBackendType": _choice("Vulkan", "D3D12", "Metal"),
    "powerPreference": _choice("high-performance", "low-power"),
    "validationMode": _choice("disabled", "wgpuOnly", "basic", "full"),
    "storageBufferCacheMode": _choice("disabled", "lazyRelease", "simple", "bucket"),
    "deviceId": COUNT,
}

TABLE: tuple[EPInfo, ...] = (
    EPInfo(
        name="cpu",
        full_name="CPUExecutionProvider",
        aliases=("mlas",),
        devices=("cpu",),
        packages=(Package("onnxruntime", "onnxruntime", "builtin", ("Linux", "Windows", "Darwin")),),
        # uint8 activations with int8 weights: MLAS has no fast kernels for the other pairs.
        int8=Int8("uint8", "int8", per_channel=True),
        saves_graph=True,
    ),
    EPInfo(
        name="qnn",
        full_name="QNNExecutionProvider",
        aliases=("qualcomm",),
        devices=("npu", "gpu"),
        packages=(
            Package("onnxruntime-qnn", "onnxruntime_qnn", "plugin", ("Linux",), ("x86_64", "aarch64"), extra="qnn"),
            Package("onnxruntime-qnn", "onnxruntime_qnn", "plugin", _WINDOWS, extra="qnn"),
            _windowsml(),
        ),
        libraries={
            "Linux": "libonnxruntime_providers_qnn.so",
            "Windows": "onnxruntime_providers_qnn.dll",
        },
        vendors=("Qualcomm",),
        can_compile=True,
        uncompilable=("bf16", "fp64"),
        device_choosing=("soc_model", "htp_arch"),
        border_option="offload_graph_io_quantization",
        side_files={"enable_framework_op_trace": ("framework_op_trace_dir", "qnn_op_trace.json")},
        options=_QNN_OPTIONS,
        device_options={"npu": {"backend_type": "htp"}, "gpu": {"backend_type": "gpu"}},
        simulated_on={"npu": (("Linux", "x86_64"),)},
        # Without a SoC the simulator cannot finalize float transformers (QNN error 1002); 60 is Snapdragon X Elite.
        simulator_options={"soc_model": "60"},
        auto_precision={"npu": "w8a16"},
        int8=Int8("uint8", "uint8", per_channel=False, rules="qnn"),
        unquantized={"gpu": "a quantized model hangs there (finding gpu-004)"},
    ),
    EPInfo(
        name="openvino",
        full_name="OpenVINOExecutionProvider",
        aliases=("ov", "intel"),
        devices=("npu", "gpu", "cpu"),
        packages=(
            Package(
                "onnxruntime-ep-openvino", "onnxruntime_ep_openvino", "plugin", _LINUX_WINDOWS, _X64, "openvino"
            ),
            Package("onnxruntime-openvino", "onnxruntime", "bundled", _LINUX_WINDOWS, _X64, tracer="openvino"),
            _windowsml(),
        ),
        libraries={
            "Linux": "libonnxruntime_providers_openvino_plugin.so",
            "Windows": "onnxruntime_providers_openvino_plugin.dll",
        },
        vendors=("Intel",),
        native_quantization=True,
        can_compile=True,
        options=_OPENVINO_OPTIONS,
        threads_option="num_of_threads",
        device_options={
            "npu": {"device_type": "NPU"},
            "gpu": {"device_type": "GPU"},
            "cpu": {"device_type": "CPU"},
        },
    ),
    EPInfo(
        name="dml",
        full_name="DmlExecutionProvider",
        aliases=("directml",),
        devices=("gpu",),
        packages=(
            Package("onnxruntime-directml", "onnxruntime", "bundled", _WINDOWS),
            Package("onnxruntime-windowsml", "onnxruntime", "bundled", _WINDOWS),
        ),
        options={"device_id": COUNT, "performance_preference": _choice("default", "high_performance", "minimum_power"),
                 "disable_metacommands": BOOL, "enable_graph_capture": BOOL},
    ),
    EPInfo(
        name="vitisai",
        full_name="VitisAIExecutionProvider",
        aliases=("vitis", "ryzenai"),
        devices=("npu",),
        packages=(_windowsml(),),
        libraries={"Windows": "onnxruntime_providers_vitisai.dll"},
        vendors=("AMD",),
        native_quantization=True,
        can_compile=True,
        options=_VITISAI_OPTIONS,
    ),
    EPInfo(
        name="webgpu",
        full_name="WebGpuExecutionProvider",
        devices=("gpu",),
        packages=(
            Package(
                "onnxruntime-ep-webgpu", "onnxruntime_ep_webgpu", "plugin", ("Linux", "Windows", "Darwin")
            ),
            Package("onnxruntime-webgpu", "onnxruntime", "bundled", ("Linux", "Windows", "Darwin")),
        ),
        libraries={
            "Linux": "libonnxruntime_providers_webgpu.so",
            "Windows": "onnxruntime_providers_webgpu.dll",
            "Darwin": "libonnxruntime_providers_webgpu.dylib",
        },
        options=_WEBGPU_OPTIONS,
    ),
    EPInfo(
        name="nvtensorrtrtx",
        full_name="NvTensorRTRTXExecutionProvider",
        aliases=("nvtensorrt_rtx", "trt_rtx", "trtrtx"),
        devices=("gpu",),
        packages=(
            Package("onnxruntime-ep-nv-tensorrt-rtx", "onnxruntime_ep_nv_tensorrt_rtx", "plugin", _LINUX_WINDOWS),
            Package("onnxruntime-trt-rtx", "onnxruntime", "bundled", _WINDOWS),
            _windowsml(),
        ),
        libraries={
            "Linux": "libonnxruntime_providers_nv_tensorrt_rtx.so",
            "Windows": "onnxruntime_providers_nv_tensorrt_rtx.dll",
        },
        vendors=("NVIDIA",),
        native_quantization=True,
        can_compile=True,
        options=_TENSORRT_RTX_OPTIONS,
    ),
    EPInfo(
        name="migraphx",
        full_name="MIGraphXExecutionProvider",
        aliases=("amdgpu",),
        devices=("gpu",),
        packages=(
            Package("onnxruntime-migraphx", "onnxruntime", "bundled", ("Linux",), ("x86_64",)),
            _windowsml(),
        ),
        libraries={"Windows": "onnxruntime_providers_migraphx.dll"},
        vendors=("AMD",),
        native_quantization=True,
        can_compile=True,
        options=_MIGRAPHX_OPTIONS,
    ),
    EPInfo(
        name="cuda",
        full_name="CUDAExecutionProvider",
        aliases=("nvidia",),
        devices=("gpu",),
        packages=(Package("onnxruntime-gpu", "onnxruntime", "bundled", _LINUX_WINDOWS),),
        vendors=("NVIDIA",),
        options=_CUDA_OPTIONS,
    ),
)  # fmt: skip

JSON_EXAMPLES: dict[str, str] = {"op_affinity": '{"op_type":{"GroupQueryAttention":"htp"}}'}
"""What an option of type `json` looks like."""

DOCUMENT_ENTRIES: frozenset[str] = frozenset(
    {
        "optimization.disable_specified_optimizers",
        "optimization.enable_gelu_approximation",
        "session.disable_aot_function_inlining",
        "session.disable_double_qdq_remover",
        "session.disable_prepacking",
        "session.disable_quant_qdq",
        "session.dynamic_block_base",
        "session.enable_quant_qdq_cleanup",
        "session.force_spinning_stop",
        "session.inter_op.allow_spinning",
        "session.intra_op.allow_spinning",
        "session.qdqisint8allowed",
        "session.set_denormal_as_zero",
        "session.x64quantprecision",
        "mlas.enable_gemm_fastmath_arm64_bfloat16",
    }
)
"""Config entries of the runtime that a document may set. Others write files (`ep.context_file_path`,
`session.collect_node_memory_stats_to_file`, `session.debug_layout_transformation`), read some, or change what a
session is (`session.load_model_format`); what is not known is one of them."""

AUTO_DEVICES: tuple[Device, ...] = ("npu", "gpu", "cpu")
"""Order in which `auto` looks for a real device."""

DEVICE_EPS: dict[Device, tuple[str, ...]] = {
    "npu": ("qnn", "openvino", "vitisai"),
    "gpu": ("nvtensorrtrtx", "cuda", "migraphx", "openvino", "dml", "qnn", "webgpu"),
    "cpu": ("cpu", "openvino"),
}
"""EPs that drive a kind of device, best first."""

BY_NAME: dict[str, EPInfo] = {info.name: info for info in TABLE}


def _names(info: EPInfo) -> tuple[str, ...]:
    short = info.full_name.removesuffix("ExecutionProvider")
    return (info.name, *info.aliases, info.full_name, short)


_ANY_NAME: dict[str, EPInfo] = {name.casefold(): info for info in TABLE for name in _names(info)}


def is_known(name: str) -> bool:
    """Whether a word is a name, an alias or a full name of an EP."""
    return name.strip().casefold() in _ANY_NAME


def find(name: str) -> EPInfo:
    """The row for a name, an alias or a full name, in any case."""
    info = _ANY_NAME.get(name.strip().casefold())
    if info is None and name.strip().casefold() in DEVICE_EPS:
        raise RequestError(
            f"`{name}` is a device, not an execution provider",
            hint=f"write `--device {name}`, or `EP/{name}` as the target",
        )
    if info is None:
        raise RequestError(f"unknown execution provider `{name}`", hint=did_you_mean(name, BY_NAME))
    return info
