"""From our session section to ONNX Runtime's SessionOptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnxruntime

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.suggest import did_you_mean

_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
RECORD_PLACEMENT = "session.record_ep_graph_assignment_info"
PROFILE_PREFIX = "profile_file_prefix"
"""Where the runtime's profiler writes; it is no config entry."""
SAVED_GRAPH = "optimized_model_filepath"
"""Where the runtime saves the graph it executes; it is no config entry either."""


def session_options(section: SessionSection, added: Mapping[str, str] | None = None, *, verbose: bool = False) -> Any:
    """Options with placement recorded and, unless `verbose`, only warnings and errors in the log.

    `added` is what a monitor brings.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 0 if verbose else 2
    if section.threads is not None:
        options.intra_op_num_threads = section.threads
        options.inter_op_num_threads = 1
    if section.optimization_level not in _LEVELS:
        raise RequestError(
            f"unknown optimization level `{section.optimization_level}`",
            hint=did_you_mean(section.optimization_level, _LEVELS),
        )
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, _LEVELS[section.optimization_level])
    added = dict(added or {})
    if PROFILE_PREFIX in added:
        options.enable_profiling = True
        options.profile_file_prefix = added.pop(PROFILE_PREFIX)
    if SAVED_GRAPH in added:
        options.optimized_model_filepath = added.pop(SAVED_GRAPH)
        options.log_severity_level = 3  # it warns that the file is for this machine only, which is what it is for
    for key, value in {**section.config_entries, **added, RECORD_PLACEMENT: "1"}.items():
        options.add_session_config_entry(key, value)
    for name, size in section.fixed_dims.items():
        options.add_free_dimension_override_by_name(name, size)
    return options
