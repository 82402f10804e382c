"""Whether the files of a model folder belong together: weights with the config, tokenizer and processor with both."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.errors import ModelFileError, ModelkitError
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.model_ref import CONFIG

_NUMBER = re.compile(r"\.\d+(?=\.)")
_OTHERS = "the files may be of two models; fetch the whole folder again from one place"


def find_misfit(report: Mapping[str, Any], names: Iterable[str], folder: ModelFolder) -> ModelFileError | None:
    """The error of weights that do not fit the config, by the report of the library that loaded them.

    `names` are all tensors of the loaded model. Tensors of a head that is missing are no misfit but another task.
    """
    mismatched = sorted(report.get("mismatched_keys") or ())
    if mismatched:
        name, stored, wanted = mismatched[0]
        more = "" if len(mismatched) == 1 else f" ({len(mismatched)} tensors in all)"
        return ModelFileError(
            f"the weights of `{folder.path}` do not fit its {CONFIG}: `{name}` is {list(stored)} in the file and "
            f"{list(wanted)} by the config{more}",
            hint=_OTHERS,
        )
    missing, unexpected = set(report.get("missing_keys") or ()), set(report.get("unexpected_keys") or ())
    loaded = set(names) - missing
    lacking, superfluous = _same_layers(missing, loaded), _same_layers(unexpected, loaded)
    for found, says in (
        (lacking, "has fewer layers than its config names"),
        (superfluous, "has more layers than its config names"),
    ):
        if found:
            return ModelFileError(
                f"the weights of `{folder.path}` do not fit its {CONFIG}: the file {says}, as `{min(found)}` shows",
                hint=_OTHERS,
            )
    return None


def _same_layers(names: Collection[str], loaded: Collection[str]) -> list[str]:
    """The tensors that are those of a loaded layer but for its number."""
    known = {_NUMBER.sub(".N", name) for name in loaded if _NUMBER.search(name)}
    return [name for name in names if _NUMBER.sub(".N", name) in known and _NUMBER.search(name)]


def processor_warnings(folder: ModelFolder) -> list[str]:
    """What shows that the tokenizer or the image processor beside a model is that of another one."""
    found = []
    vocabulary, tokens = folder.value("vocab_size"), _highest_token(folder)
    if isinstance(vocabulary, int) and tokens is not None and tokens >= vocabulary:
        found.append(
            f"the tokenizer has tokens up to number {tokens}, but the model only {vocabulary} (`vocab_size`): it may "
            "be the tokenizer of another model"
        )
    processor = _read(folder, "preprocessor_config.json")
    processor = processor.get("image_processor", processor) if isinstance(processor, dict) else {}
    channels, means = folder.value("num_channels"), processor.get("image_mean")
    if isinstance(channels, int) and isinstance(means, list) and len(means) not in (1, channels):
        found.append(
            f"the image processor has {len(means)} channels (`image_mean`), but the model {channels} (`num_channels`): "
            "it may be the processor of another model"
        )
    found += _size_warnings(folder)
    return found


def _size_warnings(folder: ModelFolder) -> list[str]:
    wanted = folder.value("image_size")
    wanted = [wanted, wanted] if isinstance(wanted, int) else wanted
    if not isinstance(wanted, list) or not (folder.path / "preprocessor_config.json").is_file():
        return []
    try:
        made = list(folder.image_size())
    except ModelkitError:
        return []  # reported where the size is needed
    if len(wanted) != 2 or made == wanted:
        return []
    return [
        f"the image processor makes images of {made[0]} x {made[1]}, but the model was made for "
        f"{wanted[0]} x {wanted[1]} (`image_size`): it may be the processor of another model"
    ]


def _read(folder: ModelFolder, name: str) -> Any:
    path = folder.path / name
    try:
        return read_object(path, lenient=True) if path.is_file() else {}
    except (ModelkitError, ValueError):
        return {}  # a damaged file is reported where it is used


def _highest_token(folder: ModelFolder) -> int | None:
    """The highest number of a token; None where no tokenizer says so."""
    whole = _read(folder, "tokenizer.json")
    model = whole.get("model") if isinstance(whole, dict) else None
    words = model.get("vocab") if isinstance(model, dict) else _read(folder, "vocab.json")
    added = whole.get("added_tokens") or [] if isinstance(whole, dict) else []
    numbers = [word.get("id") for word in added if isinstance(word, dict)]
    if isinstance(words, dict):
        numbers += words.values()
    elif isinstance(words, list):
        numbers.append(len(words) - 1)
    return max((number for number in numbers if type(number) is int), default=None)
