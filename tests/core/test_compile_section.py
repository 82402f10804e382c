"""The compile section of a config."""

from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.core import values
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import RequestError


def test_a_section_survives_its_json() -> None:
    section = CompileSection("ort_jit", True, {"soc_model": "60"})
    assert values.read(CompileSection, values.to_json(section), "compile") == section
    assert values.read(CompileSection, {}, "compile") == CompileSection()


def test_the_older_name_of_a_compiler_is_understood() -> None:
    assert values.read(CompileSection, {"compiler": "ort_session"}, "compile").compiler == "ort_jit"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "`compile` must be an object"),
        ({"provider_option": {}}, "unknown key `compile.provider_option`"),
        ({"compiler": 1}, "`compile.compiler` cannot be 1"),
        ({"embed": "yes"}, "`compile.embed` must be true or false"),
        ({"provider_options": {"soc_model": 60}}, "`compile.provider_options.soc_model` must be text"),
        ({"provider_options": None}, "`compile.provider_options` must be an object"),
    ],
)
def test_what_does_not_fit_is_named(value: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        values.read(CompileSection, value, "compile")


def test_a_misspelt_key_gets_the_nearest_one() -> None:
    with pytest.raises(RequestError) as caught:
        values.read(CompileSection, {"provider_option": {}}, "compile")
    assert "`provider_options`" in (caught.value.hint or "")
