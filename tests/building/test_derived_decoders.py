"""Decoders in no table, built for real: with the cache that their class writes, or whole with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.building import build as building
from winml.modelkit.building.build import BuildRequest
from winml.modelkit.building.build_parts import build_model
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.exported import ExportPlan
from winml.modelkit.building.result import BuildResult
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.generation import is_decoder_folder, read_decoder_folder
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.runtimes import choose_runtime

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf"), pytest.mark.slow]

BLOOM: dict[str, Any] = {"vocab_size": 99, "hidden_size": 16, "n_layer": 2, "n_head": 2}
DEEPSEEK: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 128, "n_routed_experts": 2, "num_experts_per_tok": 1,
    "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "kv_lora_rank": 8, "q_lora_rank": 8,
    "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 4, "moe_intermediate_size": 16,
}  # fmt: skip


def _save(folder: Path, name: str, config: dict[str, Any]) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    made = getattr(transformers, f"{name}Config")(**config)
    getattr(transformers, f"{name}ForCausalLM")(made).save_pretrained(folder)
    return folder


def _build(folder: Path, output: Path) -> BuildResult:
    request = BuildRequest(ConfigRequest(str(folder), target="cpu"), output=str(output), analyze=False)
    found = build_model(request, lambda event: None)
    assert isinstance(found, BuildResult)
    return found


@pytest.mark.parametrize(("name", "config", "even"), [("Bloom", BLOOM, True), ("DeepseekV3", DEEPSEEK, False)])
def test_a_decoder_in_no_table_generates_the_tokens_of_pytorch(
    name: str, config: dict[str, Any], even: bool, tmp_path: Path
) -> None:
    result = _build(_save(tmp_path / "hf", name, config), tmp_path / "built")
    report = json.loads((tmp_path / "built/export_metadata.json").read_text(encoding="utf-8"))
    tokens = report["parity"]["tokens"]
    assert tokens["equal"] == tokens["prompts"] * tokens["tokens"] > 40
    assert any("its cache was derived" in note for note in result.notes)
    assert not any("without a cache" in warning for warning in result.warnings)
    described = read_decoder_folder(tmp_path / "built")
    assert (described.layers, described.head_size is not None) == (2, even)
    assert even or choose_runtime(Target("cpu", "cpu"), folder=described).name == "onnxruntime"


def test_a_decoder_that_cannot_be_exported_with_its_cache_is_built_whole_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = building.run_export

    def refuse(plan: ExportPlan, exporting: Any) -> Any:
        if plan.section.part == DECODER:
            raise RunFailedError("operator X has no form in ONNX")
        return export(plan, exporting)

    monkeypatch.setattr(building, "run_export", refuse)
    folder = _save(tmp_path / "hf", "Bloom", BLOOM)
    result = _build(folder, tmp_path / "built")
    assert any("could not be exported with its cache: operator X" in warning for warning in result.warnings)
    assert any("built whole, without a cache" in warning for warning in result.warnings)
    assert not is_decoder_folder(tmp_path / "built")
    config = ConfigRequest(str(folder), target="cpu", export=ExportOptions(part=DECODER))
    with pytest.raises(RunFailedError, match="operator X"):  # what was asked for by its name is an error
        building.build(BuildRequest(config, output=str(tmp_path / "other")), lambda event: None)
    assert not (tmp_path / "other").exists()
    whole = replace(config, export=ExportOptions(part=WHOLE))
    assert building.build(BuildRequest(whole, output=str(tmp_path / "whole")), lambda event: None).ok
