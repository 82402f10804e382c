"""Both programs continue texts alike: with a cache in place and a growing one, alone and in a batch, padded or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.decoder_zoo import VOCABULARY, decoder_folder

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.generator import Ids, generate
from winml.modelkit.session.generation.measure import make_prompt
from winml.modelkit.session.generation.ort_loop import OrtGenerator

CPU = Target("cpu", "cpu")
NEW = 12


@pytest.fixture(scope="module", params=[True, False], ids=["in place", "growing"])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OrtGenerator:
    folder = decoder_folder(tmp_path_factory.mktemp("decoder"), in_place=request.param, seed=11)
    return OrtGenerator(folder, target=CPU)


def _without_past(decoder: OrtGenerator, text: Ids) -> Ids:
    """The tokens that follow when the whole text is run again for every one of them."""
    found = []
    for _ in range(NEW):
        token = decoder.score(text)[:, -1].argmax(axis=-1)[:, None]
        found.append(token)
        text = np.concatenate([text, token], axis=1)
    return np.concatenate(found, axis=1)


def _prompts(batch: int, length: int, seed: int = 0) -> Ids:
    return np.random.default_rng(seed).integers(0, VOCABULARY, (batch, length), np.int64)


def test_steps_with_a_past_give_the_tokens_that_the_whole_text_gives(decoder: OrtGenerator) -> None:
    prompt = _prompts(1, 7)
    tokens = generate(decoder, prompt, new_tokens=NEW, ends=())
    assert tokens.tolist() == _without_past(decoder, prompt).tolist()
    assert len(set(tokens[0].tolist())) > 2, "a text of one token would hide a step that reads the wrong one"


def test_sequences_of_a_batch_do_not_see_each_other(decoder: OrtGenerator) -> None:
    prompts = _prompts(3, 6)
    together = generate(decoder, prompts, new_tokens=NEW, ends=())
    alone = [generate(decoder, prompts[row : row + 1], new_tokens=NEW, ends=())[0].tolist() for row in range(3)]
    assert together.tolist() == alone


def test_padding_on_the_left_changes_nothing(decoder: OrtGenerator) -> None:
    prompts = _prompts(2, 6)
    mask = np.array([[0, 0, 1, 1, 1, 1], [1] * 6])
    together = generate(decoder, prompts, mask, new_tokens=NEW, ends=())
    alone = generate(decoder, prompts[:1, 2:], new_tokens=NEW, ends=())
    assert together[0].tolist() == alone[0].tolist()


def test_tokens_that_were_returned_stay_as_they_were(decoder: OrtGenerator) -> None:
    decoder.start(_prompts(1, 4), new_tokens=NEW)
    kept = [decoder.next() for _ in range(NEW)]
    assert [token.tolist() for token in kept] == generate(decoder, _prompts(1, 4), new_tokens=NEW, ends=()).T.tolist()


@pytest.mark.parametrize("in_place", [True, False])
def test_onnxruntime_genai_gives_the_same_tokens(in_place: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    from winml.modelkit.session.generation.genai_loop import GenaiGenerator

    folder = decoder_folder(tmp_path, in_place=in_place, seed=11)
    prompts = _prompts(2, 6)
    with OrtGenerator(folder, target=CPU) as ours, GenaiGenerator(folder, target=CPU) as theirs:
        found = [generate(one, prompts, new_tokens=NEW, ends=()).tolist() for one in (ours, theirs)]
    assert found[0] == found[1]


@pytest.mark.parametrize("tail", [[], [5], [5, 5]], ids=["none", "one", "two"])
def test_the_padding_token_is_a_token_like_any_other_to_onnxruntime_genai(tail: list[int], tmp_path: Path) -> None:
    """It is the end token of many models, and ends the turns of their conversations."""
    pytest.importorskip("onnxruntime_genai")
    from winml.modelkit.session.generation.genai_loop import GenaiGenerator

    folder = decoder_folder(tmp_path / "ours", seed=3)
    prompt = np.concatenate([_prompts(1, 6), np.array([tail], np.int64).reshape(1, -1)], axis=1)
    with OrtGenerator(folder, target=CPU) as ours:
        wanted = generate(ours, prompt, new_tokens=NEW, ends=())
    # The token that the text has in its middle, so that it is generated and the text goes on after it.
    padding = 5 if tail else int(wanted[0, 2])
    folder = decoder_folder(tmp_path / "theirs", seed=3, pad_token_id=padding)
    with GenaiGenerator(folder, target=CPU) as theirs:
        assert generate(theirs, prompt, new_tokens=NEW, ends=()).tolist() == wanted.tolist()
        if tail:
            with pytest.raises(RequestError, match="the token 5 at the end of a prompt for padding"):
                theirs.start(np.concatenate([prompt, prompt]), new_tokens=1)


def test_a_prompt_is_the_same_for_the_same_seed(decoder: OrtGenerator) -> None:
    first, again, other = (make_prompt(decoder.description, batch=2, length=9, seed=seed) for seed in (1, 1, 2))
    assert first.shape == (2, 9)
    assert first.tolist() == again.tolist() != other.tolist()
    assert first.max() < VOCABULARY


@pytest.mark.parametrize("beside", [True, False])
def test_weights_of_another_volume_are_not_copied_unless_nothing_can_be_written_beside_them(
    beside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, where a file of another volume cannot be linked."""
    pytest.importorskip("onnxruntime_genai")
    from winml.modelkit.session.generation import genai_loop
    from winml.modelkit.worker.scratch import ScratchFolder

    made: list[Path | None] = []

    class Watched(ScratchFolder):
        def __init__(self, prefix: str, *, within: Path | None = None) -> None:
            made.append(within)
            if within is not None and not beside:
                raise PermissionError("read-only")
            super().__init__(prefix, within=within)

    def link(source: Path, to: Path) -> None:
        raise OSError("another volume")

    monkeypatch.setattr(genai_loop, "_COPIES", True)
    monkeypatch.setattr(genai_loop, "_is_same_volume", lambda one, other: False)
    monkeypatch.setattr(genai_loop, "ScratchFolder", Watched)
    if not beside:
        monkeypatch.setattr(genai_loop.os, "link", link)
    folder = decoder_folder(tmp_path / "decoder")
    with genai_loop.GenaiGenerator(folder, target=Target("cpu", "cpu")) as generator:
        assert made == ([tmp_path] if beside else [tmp_path, None])
        assert bool(generator.notes) != beside
        assert all("were copied to" in note for note in generator.notes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decoder"]
