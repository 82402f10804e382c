"""Reads the file in which the QNN EP says what it made of the model's nodes."""

from __future__ import annotations

import json
from pathlib import Path


def qnn_types(path: Path) -> dict[str, str]:
    """The QNN type of every operator by name; empty where the EP wrote no such file or another format."""
    try:
        graphs = json.loads(path.read_text(encoding="utf-8"))["subgraph_traces"]
        return {op["dst_name"]: op["dst_qnn_op_type"] for graph in graphs for op in graph["op_mappings"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # types are an extra; names and cycles are in the CSV
