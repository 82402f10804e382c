"""Write the blocks by which families are recognised in graphs, from tiny models of transformers.

    python scripts/make_blocks.py FOLDER [NAME ...] [--dynamo]

FOLDER is what `benchmarks/walk/tiny_models.py` makes. Models get more layers than those have, random weights, and are
exported as any tool might: by the legacy exporter of torch at opset 17, with `--dynamo` by the other one. What is known
already stays, so that both can be run one after the other. Families of the catalog and their parts are the default.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import onnx
import torch
import transformers

from winml.modelkit.graph.blocks import find_block
from winml.modelkit.knowledge import catalog, files, model_family
from winml.modelkit.knowledge.model_family import BlocksFile, FamilyBlock

LAYERS = ("num_hidden_layers", "num_layers", "n_layers", "encoder_layers")
COUNT = 4
DEPTHS = (3, 4, 6, 3)
PARTS = ("clip_text_model", "clip_vision_model", "siglip_vision_model", "siglip_text_model", "dinov2_with_registers")


class _First(torch.nn.Module):
    """A model that takes tensors in a row and gives its first output."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model(**dict(zip(self.names, values, strict=True)))[0]
        return found


def _load(folder: Path) -> torch.nn.Module:
    """The model of a folder with random weights, and with so many layers that a block repeats."""
    config: Any = transformers.AutoConfig.from_pretrained(folder)
    for part in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
        for name in LAYERS:
            if part is not None and isinstance(getattr(part, name, None), int):
                setattr(part, name, COUNT)
    if isinstance(getattr(config, "depths", None), list | tuple):
        config.depths = list(DEPTHS[: len(config.depths)])
    if getattr(config, "use_relative_position_bias", None) is False:
        config.use_relative_position_bias = True  # as every published BEiT has it, and no config by default
    model: torch.nn.Module = getattr(transformers, config.architectures[0])(config).eval()
    # Weights that are equal, as those of new norms are, are one in the file of the legacy exporter.
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.1)
    return model


def _inputs(model: Any) -> dict[str, torch.Tensor]:
    config, found = model.config, {}
    ids, mask = torch.randint(3, 20, (1, 12)), torch.ones(1, 12, dtype=torch.long)
    if hasattr(config, "text_config") and hasattr(config, "vision_config"):
        found = {"input_ids": ids}
    if model.main_input_name == "pixel_values" or found:
        size = getattr(getattr(config, "vision_config", config), "image_size", None) or 64
        size = size if isinstance(size, int) else size[0]
        channels = getattr(getattr(config, "vision_config", config), "num_channels", 3)
        return {**found, "pixel_values": torch.randn(1, channels, size, size)}
    if model.main_input_name == "input_values":
        return {"input_values": torch.randn(1, 4000)}
    return {"input_ids": ids, "attention_mask": mask}


def _export(folder: Path, path: Path, *, dynamo: bool) -> None:
    model = _load(folder)
    given = _inputs(model)
    with torch.no_grad():
        torch.onnx.export(
            _First(model, list(given)), tuple(given.values()), path,
            dynamo=dynamo, opset_version=18 if dynamo else 17, input_names=list(given), verbose=False,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--dynamo", action="store_true")
    given = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    known: dict[tuple[str, str], set[str]] = {}
    for one in model_family.load_blocks() if model_family.BLOCKS.is_file() else ():
        known[one.marks, one.kinds] = set(one.families)
    for name in given.names or [*(family.name for family in catalog.load().families), *PARTS]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            try:
                _export(given.folder / name, path, dynamo=given.dynamo)
                block = find_block(onnx.load(path, load_external_data=False))
            except Exception as error:  # noqa: BLE001 - any class may refuse what most accept: it has no block then
                sys.stderr.write(f"{name}: {type(error).__name__}: {str(error)[:120]}\n")
                continue
        sys.stderr.write(f"{name}: {block}\n")
        if block is not None and block.share >= model_family.LEAST_SHARE:
            known.setdefault((block.marks, block.kinds), set()).add(name)
    rows = sorted((min(names), marks, kinds, tuple(sorted(names))) for (marks, kinds), names in known.items())
    blocks = tuple(FamilyBlock(marks=marks, kinds=kinds, families=names) for _, marks, kinds, names in rows)
    model_family.BLOCKS.write_bytes(files.text(BlocksFile(blocks=blocks)))


if __name__ == "__main__":
    main()
