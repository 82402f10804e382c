"""Chat templates: foreign programs that wrap a prompt, in a sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.chat import FILE, ChatTemplate, has_chat_template

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf")]

TURNS = (
    "{%- for m in messages %}\n"
    "  {%- if m['role'] == 'system' %}{% continue %}{% endif %}\n"
    "<|{{ m['role'] }}|>{{ m['content'] | trim }}{{ eos_token }}\n"
    "{%- endfor %}\n"
    "{% if add_generation_prompt %}\n<|assistant|>{{ {'a': 'ü'} | tojson }}{% endif %}"
)


def _folder(folder: Path, template: str, **config: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(template, encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_a_prompt_is_the_turn_of_a_user_and_the_answer_begins(tmp_path: Path) -> None:
    found = ChatTemplate(_folder(tmp_path, TURNS, eos_token={"content": "</s>"}))
    text = found.render(" hello ", "row 0")
    assert "<|user|>hello</s>" in text
    assert text.endswith('<|assistant|>{"a": "ü"}')


def test_the_text_is_that_of_transformers(tmp_path: Path) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    prompts = ["hello", " two\nlines ", "{{ not a template }}"]
    found = ChatTemplate(_folder(tmp_path, TURNS, eos_token="</s>", bos_token="<s>"))
    for prompt in prompts:
        theirs, _ = render_jinja_template(
            [[{"role": "user", "content": prompt}]],
            chat_template=TURNS,
            add_generation_prompt=True,
            eos_token="</s>",
            bos_token="<s>",
        )
        assert found.render(prompt, "a row") == theirs[0]


def test_the_template_of_the_config_is_read_where_there_is_no_file(tmp_path: Path) -> None:
    several = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "[{{ messages[0].content }}]"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}), encoding="utf-8")
    assert has_chat_template(tmp_path)
    assert ChatTemplate(tmp_path).render("x", "row 0") == "[x]"


@pytest.mark.parametrize("config", [{}, {"chat_template": None}, {"chat_template": [{"name": "tools"}]}])
def test_a_tokenizer_without_a_template_is_an_error_that_says_so(tmp_path: Path, config: dict[str, object]) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert not has_chat_template(tmp_path)
    with pytest.raises(DataError, match="has no chat template"):
        ChatTemplate(tmp_path)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ ''.__class__.__base__.__subclasses__() }}", "unsafe"),
        ("{{ messages.append(1) }}", "not safely callable|unsafe"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{{ 'a' * 1000 }}{% endfor %}{% endfor %}",
            "longer than",
        ),
        ("{{ 'a' * 10000000000 }}", "longer than"),
        ("{{ 10 ** 1000000000 }}", "too large"),
        ("{% include '/etc/passwd' %}", "loader|no loader"),
        ("{{ missing.name }}", "undefined"),
    ],
)
def test_a_template_that_reaches_for_more_is_refused(tmp_path: Path, template: str, message: str) -> None:
    found = ChatTemplate(_folder(tmp_path, template))
    with pytest.raises(DataError, match=message):
        found.render("hello", "row 0")


def test_a_template_that_is_no_template_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be used"):
        ChatTemplate(_folder(tmp_path, "{% for %}"))
    (tmp_path / FILE).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not text"):
        ChatTemplate(tmp_path)
    assert not has_chat_template(tmp_path)
