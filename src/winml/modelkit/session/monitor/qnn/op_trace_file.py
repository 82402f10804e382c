"""Reads the file in which the QNN EP says what it made of the model's nodes."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.json_text import read_json


def qnn_types(path: Path) -> dict[str, str]:
    """The QNN type of every operator by name; empty where the EP wrote no such file or another format."""
    try:
        graphs = read_json(path, lenient=True)["subgraph_traces"]
        return {op["dst_name"]: op["dst_qnn_op_type"] for graph in graphs for op in graph["op_mappings"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # types are an extra; names and cycles are in the CSV
