"""Parts of a composite model, run on what those before them give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from winml.modelkit.building.proof import operations as proof
from winml.modelkit.building.proof.links import Ran, link
from winml.modelkit.building.proof.proof import ArtifactRun
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.values import to_json
from winml.modelkit.graph.inputs import InputSpec

CACHE = np.arange(3 * 2, dtype=np.float32).reshape(1, 1, 3, 2)


def spec(name: str, *shape: int | str) -> InputSpec:
    return InputSpec(name, "tensor(float)", shape)


@pytest.mark.parametrize(("length", "rows"), [("past", [0, 1, 2]), (2, [1, 2]), (5, [1, 2, 0, 1, 2])])
def test_a_cache_of_fixed_length_has_the_last_words_of_the_first_part(length: int | str, rows: list[int]) -> None:
    size = 4 if isinstance(length, str) else length
    feed = {"past_0_key": np.zeros((1, 1, size, 2), np.float32)}
    made = link("decode", feed, [spec("past_0_key", 1, 1, length, 2)], {"prefill": Ran({}, {"present_0_key": CACHE})})
    assert made["past_0_key"][0, 0].tolist() == CACHE[0, 0, rows].tolist()


def test_the_mask_of_a_pair_is_as_long_as_the_cache_and_the_next_word() -> None:
    feed = {
        "input_ids": np.zeros((1, 1), np.int64),
        "decoder_attention_mask": np.zeros((1, 9), np.int64),
        "position_ids": np.zeros((1, 1), np.int64),
        "past_0_decoder_key": np.zeros((1, 1, 4, 2), np.float32),
    }
    specs = [spec("past_0_decoder_key", 1, 1, "past", 2), *(spec(name, 1, "n") for name in feed if "past" not in name)]
    made = link("decode", feed, specs, {"prefill": Ran({}, {"present_0_decoder_key": CACHE})})
    assert made["decoder_attention_mask"].tolist() == [[1, 1, 1, 1]]
    assert made["position_ids"].tolist() == [[3]]


def test_mask_and_positions_go_on_where_the_first_words_end() -> None:
    feed = {
        "input_ids": np.zeros((1, 1), np.int64),
        "attention_mask": np.zeros((1, 9), np.int64),
        "position_ids": np.zeros((1, 1), np.int64),
        "past_0_key": np.zeros((1, 1, 4, 2), np.float32),
    }
    specs = [spec("past_0_key", 1, 1, "past", 2), *(spec(name, 1, "n") for name in feed if name != "past_0_key")]
    before = Ran({"attention_mask": np.array([[0, 1, 1]])}, {"present_0_key": CACHE})
    made = link("decode", feed, specs, {"prefill": before})
    assert made["attention_mask"].tolist() == [[0, 1, 1, 1]]
    assert made["position_ids"].tolist() == [[2]]


def test_what_was_read_of_an_encoder_has_one_length() -> None:
    feed = {"past_0_encoder_key": np.zeros((1, 1, 2, 2), np.float32)}
    before = {"prefill": Ran({}, {"present_0_encoder_key": CACHE})}
    with pytest.raises(RunFailedError, match=r"\[1, 1, 2, 2\], and the part before gives \[1, 1, 3, 2\]"):
        link("decode", feed, [spec("past_0_encoder_key", 1, 1, 2, 2)], before)


def test_a_decoder_that_takes_more_than_its_encoder_gives_is_noticed_when_both_run(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["" : 21]>'
    texts = {
        "encoder": f"{head} e (float[1,4,8] x) => (float[1,4,8] last_hidden_state) {{ last_hidden_state = Relu (x) }}",
        "prefill": f"{head} p (float[1,LENGTH,8] encoder_hidden_states) => (float[1,LENGTH,8] logits)"
        "{ logits = Neg (encoder_hidden_states) }",
    }

    def run(part: str, text: str, earlier: dict[str, str]) -> tuple[ArtifactRun, str]:
        folder = tmp_path / f"{part}{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
        args = {
            "source": str(folder / "model.onnx"), "artifact": str(folder / "model.onnx"), "model_folder": str(folder),
            "data": to_json(DataSection("random", limit=2)), "seconds": 60.0, "folder": str(folder),
            "part": part, "earlier": earlier,
        }  # fmt: skip
        answer = proof.reference(args, None)
        target = {"model": args["source"], "ep": "cpu", "device": "cpu", "simulated": False, "distribution": None}
        found = proof.prove({**args, **target, "session": {}, "samples": answer.samples}, None)
        return found, str(folder)

    _, encoder = run("encoder", texts["encoder"], {})
    fits, folder = run("prefill", texts["prefill"].replace("LENGTH", "4"), {"encoder": encoder})
    assert fits.outputs[0].equal
    given = np.load(Path(encoder) / "made-0.npz")["a0"]
    assert (np.load(Path(folder) / "made-0.npz")["a0"] == -given).all(), "it was run on what the encoder gave"
    with pytest.raises(RunFailedError, match=r"`encoder_hidden_states` of part `prefill` has shape \[1, 5, 8\]"):
        run("prefill", texts["prefill"].replace("LENGTH", "5"), {"encoder": encoder})
