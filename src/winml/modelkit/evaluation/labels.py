"""What a label in the data means to a model: the number of one of its classes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data import processor
from winml.modelkit.data.samples import NamedClass

CONFIG = "config.json"


_GENERIC = re.compile(r"LABEL_\d+")
"""What transformers writes where nobody named the classes."""


def _plain(name: str) -> str:
    """A name as people compare it."""
    return name.casefold().replace("_", " ").replace("-", " ")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


@dataclass(frozen=True)
class ClassNames:
    """The names of a model's classes; empty when it has none."""

    numbers: dict[str, int]

    def number(self, label: Any, classes: int, where: str) -> int:
        """The class behind a label: a name of the model's, or a number of it."""
        found = self._number(label, where)
        if not 0 <= found < classes:
            raise DataError(
                f"label {found} of {where} is out of range: the model has {classes} classes, 0 to {classes - 1}"
            )
        return found

    def plain_number(self, label: Any, where: str) -> int:
        """The number behind a label of a model that gives numbers of classes, in whatever range they are."""
        return int(label) if isinstance(label, str) and label.lstrip("-").isdigit() else self._number(label, where)

    def _number(self, label: Any, where: str) -> int:
        if isinstance(label, bool) or not isinstance(label, int | str):
            raise DataError(f"the label of {where} must be a class or its number but is {label!r:.80}")
        if isinstance(label, NamedClass):
            return self._named(label, where)
        if isinstance(label, int):
            return label
        if label in self.numbers:
            return self.numbers[label]
        if _is_number(label):
            return int(label)
        raise self._unknown(label, where)

    def _named(self, label: NamedClass, where: str) -> int:
        """A class that the data names: the model's of that name. Numbers mean the same where the model has no names."""
        if all(_GENERIC.fullmatch(name) for name in self.numbers):
            return int(label)
        found = {_plain(name): number for name, number in reversed(self.numbers.items())}.get(_plain(label.name))
        if found is None:
            raise self._unknown(label.name, where)
        return found

    def _unknown(self, label: str, where: str) -> DataError:
        hint = (
            did_you_mean(label, self.numbers)
            if self.numbers
            else f"names need `id2label` in the model's {CONFIG}; name its folder with `--processor DIR`"
        )
        return DataError(f"the model has no class `{label}`, the label of {where}", hint=hint)


def class_names(folder: Path | None) -> ClassNames:
    """The `id2label` of the config.json beside a model."""
    path = processor.find(folder, CONFIG)
    names = processor.read_object(path).get("id2label") if path else None
    if names is None:
        return ClassNames({})
    if not isinstance(names, dict) or not all(_is_number(k) and isinstance(v, str) for k, v in names.items()):
        raise DataError(f"`id2label` of `{path}` must map numbers to names")
    numbers: dict[str, int] = {}
    for number, name in sorted(names.items(), key=lambda item: int(item[0])):
        numbers.setdefault(name, int(number))  # ImageNet has two classes called `crane`
    return ClassNames(numbers)
