"""Inputs that were found by asking and running a class, for an architecture that is in no table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from winml.modelkit.building.export.families import DECODER
from winml.modelkit.core.config import InputSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.values import AtLeast, Names, key

IMAGE_WORDS = "an image takes"
"""How the note begins on words of a text that stand for an image."""
NO_CACHE = "without a cache of keys and values"
"""How the note begins on a decoder that computes its whole text again for every token."""


@dataclass(frozen=True, kw_only=True)
class DerivedPart:
    """The inputs of a part."""

    part: str
    inputs: tuple[InputSection, ...]
    sizes: Mapping[str, Annotated[int, AtLeast(1)]]
    """Sizes of open axes in the sample that PyTorch accepted."""
    fixed_sizes: Mapping[str, Annotated[int, AtLeast(1)]]
    """Sizes of open axes where a device needs fixed shapes, which PyTorch accepted."""
    notes: Names = ()
    """What is to be said of this part alone."""


@dataclass(frozen=True, kw_only=True)
class InputDerivation:
    """What was derived, and from where."""

    class_name: str = key("class")
    parts: tuple[DerivedPart, ...]
    """The whole first, then those that it is exported as."""
    mean_noise: bool = False
    """Whether the class draws random numbers, which an export replaces by their mean."""
    notes: Names

    @property
    def exported_parts(self) -> tuple[str, ...]:
        """What the model is exported as for its task: its parts where it has some; two encoders also together.

        A decoder with its cache is for a device that takes open shapes, which `has_decoder` is asked for.
        """
        names = tuple(part.part for part in self.parts if part.part != DECODER)
        return names if len(names) == 1 or "image" in names else names[1:]

    @property
    def has_decoder(self) -> bool:
        """Whether the model can be exported as one graph with a cache."""
        return any(part.part == DECODER for part in self.parts)

    def find_part(self, name: str) -> DerivedPart:
        for part in self.parts:
            if part.part == name:
                return part
        known = [part.part for part in self.parts]
        raise RequestError(f"the model has no part `{name}`", hint=did_you_mean(name, known))
