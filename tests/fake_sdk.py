"""A QAIRT SDK with the documented command lines of its tools, for hosts that do not have the real one.

Its generator hands out a context binary that the QNN EP made, so that what is built around it can be loaded.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

from winml.modelkit.building.compile.qairt import CONVERTER, GENERATOR, HOSTS, UTILITY

_CONVERTER = """
parser.add_argument("--input_network", required=True)
parser.add_argument("--output_path", required=True)
args = parser.parse_args()
assert Path(args.input_network).is_file()
Path(args.output_path).write_text(args.input_network)
"""
_GENERATOR = """
for name in ("backend", "model", "dlc_path", "binary_file", "output_dir"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--config_file")
args = parser.parse_args()
assert Path(args.backend).is_file() and Path(args.model).is_file(), "libraries"
print("generating", args.binary_file)
if "broken" in Path(args.dlc_path).read_text():
    sys.exit("the graph cannot be finalized")
if args.config_file:
    outer = json.loads(Path(args.config_file).read_text())["backend_extensions"]
    assert Path(outer["shared_library_path"]).is_file()
    (ROOT / "htp.json").write_text(Path(outer["config_file_path"]).read_text())
(Path(args.output_dir) / f"{args.binary_file}.bin").write_bytes((ROOT / "made.bin").read_bytes())
"""
_UTILITY = """
parser.add_argument("--context_binary", required=True)
parser.add_argument("--json_file", required=True)
args = parser.parse_args()
assert Path(args.context_binary).read_bytes() == (ROOT / "made.bin").read_bytes()
Path(args.json_file).write_text((ROOT / "made.json").read_text())
"""


def _tool(root: Path, body: str) -> str:
    head = f"import argparse, json, sys\nfrom pathlib import Path\nROOT = Path({str(root)!r})\n"
    return f"#!{sys.executable} -P\n{head}parser = argparse.ArgumentParser(allow_abbrev=False)\n{body}"


def make_sdk(root: Path, binary: bytes, description: dict[str, object]) -> Path:
    """An SDK folder for this host whose tools know one binary and its description."""
    folder = HOSTS[platform.system(), platform.machine().lower()][0]
    (root / "bin" / folder).mkdir(parents=True)
    (root / "lib" / folder).mkdir(parents=True)
    for name, body in ((CONVERTER, _CONVERTER), (GENERATOR, _GENERATOR), (UTILITY, _UTILITY)):
        path = root / "bin" / folder / name
        path.write_text(_tool(root, body))
        path.chmod(0o755)
    for name in ("QnnHtp", "QnnModelDlc", "QnnHtpNetRunExtensions"):
        (root / "lib" / folder / (f"{name}.dll" if os.name == "nt" else f"lib{name}.so")).touch()
    (root / "made.bin").write_bytes(binary)
    (root / "made.json").write_text(json.dumps(description))
    return root


def described(graph: str, inputs: list[dict[str, object]], outputs: list[dict[str, object]]) -> dict[str, object]:
    """The description of a binary with one graph, as qnn-context-binary-utility writes it."""
    info = {
        "graphName": graph,
        "graphInputs": [{"info": tensor} for tensor in inputs],
        "graphOutputs": [{"info": tensor} for tensor in outputs],
    }
    return {"info": {"graphs": [{"info": info}], "socModel": 60}}


def float_tensor(name: str, shape: list[int]) -> dict[str, object]:
    return {"name": name, "dataType": "QNN_DATATYPE_FLOAT_32", "dimensions": shape}
