"""`genai_config.json`: what is read of it, and what is never used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.core.generation import (
    GENAI_CONFIG,
    is_decoder_folder,
    make_genai_config,
    read_decoder_folder,
)
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.runtimes import choose_runtime, unknown_cache, unknown_settings


def _config() -> dict[str, Any]:
    return {
        "model": {
            "type": "llama",
            "bos_token_id": 1,
            "eos_token_id": [2, 5],
            "pad_token_id": 0,
            "context_length": 64,
            "vocab_size": 256,
            "decoder": {
                "session_options": {"provider_options": []},
                "filename": "model.onnx",
                "inputs": {"past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"},
                "outputs": {"present_key_names": "present.%d.key", "present_value_names": "present.%d.value"},
                "num_hidden_layers": 2,
                "num_key_value_heads": 2,
                "head_size": 16,
            },
        },
        "search": {"past_present_share_buffer": True},
    }


def _write(folder: Path, config: Any) -> Path:
    (folder / "model.onnx").write_bytes(b"")
    (folder / GENAI_CONFIG).write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_a_folder_describes_its_cache_and_its_tokens(tmp_path: Path) -> None:
    found = read_decoder_folder(_write(tmp_path, _config()))
    assert is_decoder_folder(tmp_path)
    assert found.past_pairs()[:2] == [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.1.key", "present.1.key"),
    ]
    assert (found.end_tokens, found.padding_token, found.heads, found.in_place) == ((2, 5), 0, 2, True)


def test_what_is_written_again_reads_the_same(tmp_path: Path) -> None:
    found = read_decoder_folder(_write(tmp_path, _config()))
    again = read_decoder_folder(_write(tmp_path, make_genai_config(found, file="model.onnx")))
    assert again == found


def test_settings_that_choose_code_or_a_device_are_named_and_not_written_again(tmp_path: Path) -> None:
    config = _config()
    config["model"]["decoder"]["session_options"] = {
        "custom_ops_library": "/tmp/evil.so",
        "provider_options": [{"QNN": {"backend_path": "/tmp/evil.so"}}],
    }
    found = read_decoder_folder(_write(tmp_path, config))
    assert set(found.ignored) == {"custom_ops_library", "provider_options"}
    assert "evil" not in json.dumps(make_genai_config(found, file="model.onnx"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.pop("model"), "`model` is missing"),
        (lambda c: c["model"]["decoder"].update(filename="../model.onnx"), "outside its folder"),
        (lambda c: c["model"]["decoder"].update(filename="/etc/passwd"), "outside its folder"),
        (lambda c: c["model"]["decoder"].update(filename="absent.onnx"), "not there"),
        (lambda c: c["model"]["decoder"]["inputs"].update(past_key_names="%s%d"), "one `%d`"),
        (lambda c: c["model"]["decoder"].update(num_hidden_layers=10**9), "from 1 to"),
        (lambda c: c["model"].update(context_length=-1), "from 1 to"),
        (lambda c: c["model"].update(eos_token_id="</s>"), "whole number"),
        (lambda c: c["model"].update(encoder={}), "several parts"),
        (lambda c: c["model"].update(eos_token_id=2**40), "whole number"),
        (lambda c: c["model"]["decoder"].update(filename="m" * 5000), "model|name"),
        (lambda c: c["model"]["decoder"]["inputs"].update(input_ids="tokens"), "another name"),
    ],
)
def test_a_config_that_says_too_little_or_too_much_is_refused(tmp_path: Path, change: Any, said: str) -> None:
    config = _config()
    change(config)
    with pytest.raises(ModelFileError, match=said.replace("`", "`")):
        read_decoder_folder(_write(tmp_path, config))


def test_a_model_without_an_end_token_gets_none(tmp_path: Path) -> None:
    config = _config()
    config["model"].pop("eos_token_id")
    found = read_decoder_folder(_write(tmp_path, config))
    assert found.end_tokens == ()
    assert make_genai_config(found, file="model.onnx")["model"]["eos_token_id"] == []


def test_settings_that_genai_has_no_word_for_are_run_by_our_loop() -> None:
    cpu, plain = Target("cpu", "cpu"), SessionSection(threads=1)
    fixed = SessionSection(fixed_dims={"batch": 1})
    assert choose_runtime(cpu, section=fixed).name == "onnxruntime"
    assert unknown_settings(plain) is None
    assert unknown_settings(fixed) == "fixed dimensions"
    assert choose_runtime(cpu, strict_ep=True).name == "onnxruntime"


def test_a_cache_whose_layers_differ_is_run_by_our_loop(tmp_path: Path) -> None:
    config = _config()
    config["model"]["decoder"].pop("head_size")
    found = read_decoder_folder(_write(tmp_path, config))
    assert "must be the same in all layers" in (unknown_cache(found) or "")
    assert choose_runtime(Target("cpu", "cpu"), folder=found).name == "onnxruntime"


def test_a_window_that_a_config_names_is_reported(tmp_path: Path) -> None:
    config = _config()
    config["model"]["decoder"]["sliding_window"] = {"window_size": 128}
    assert read_decoder_folder(_write(tmp_path, config)).ignored == ("sliding_window",)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"model": 3}'])
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / GENAI_CONFIG).write_text(text, encoding="utf-8")
    with pytest.raises(ModelFileError):
        read_decoder_folder(tmp_path)
