"""scripts/run_pages.py on pages made for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pages import Block, PageError, read_page, run_block
from run_pages import BlockFailed, main, missing_needs, normalise, refresh_outputs, run_page, shorten

pytestmark = pytest.mark.posix("blocks are run by sh")


def _page(folder: Path, text: str, header: str = "<!-- run: quick -->") -> Path:
    path = folder / "page.md"
    path.write_text(f"{header}\n\n# A page\n\n{text}", encoding="utf-8")
    return path


TWO_BLOCKS = """First:

```sh
echo one > kept.txt
pwd
```

```text
as it was
```

Then, from Python:

```python
print(open("kept.txt").read())
```

```console
exit 1
```
"""


def _run_main(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["run_pages.py", *map(str, words)])
    return main()


def test_blocks_run_in_order_in_one_folder_and_console_blocks_do_not(tmp_path: Path) -> None:
    said = run_page(read_page(_page(tmp_path, TWO_BLOCKS)))
    assert list(said.values()) == [".\n", "one\n\n"]


def test_the_folder_is_empty_at_first_and_winml_is_the_one_beside_this_python(tmp_path: Path) -> None:
    page = _page(tmp_path, "```sh\nls -A\ncommand -v winml\n```\n")
    assert list(run_page(read_page(page)).values()) == [".venv/bin/winml\n"]


def test_refresh_writes_the_output_where_it_is_shown_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _page(tmp_path, TWO_BLOCKS)
    before = path.read_text(encoding="utf-8")
    assert _run_main(monkeypatch, path) == 0
    assert path.read_text(encoding="utf-8") == before
    assert _run_main(monkeypatch, "--refresh", path) == 0
    assert path.read_text(encoding="utf-8") == before.replace("as it was\n", ".\n")
    assert "ok in " in capsys.readouterr().out


def test_a_text_block_after_prose_is_not_an_output(tmp_path: Path) -> None:
    page = read_page(_page(tmp_path, "```sh\necho one\n```\n\nA file looks so:\n\n```text\nold\n```\n"))
    assert refresh_outputs(page, run_page(page)) == page.text


def test_a_block_that_fails_ends_the_page_with_exit_1_and_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "```sh\necho before\nls missing-file\necho after\n```\n\n```text\nold\n```\n\n```sh\necho never\n```\n"
    path = _page(tmp_path, text)
    before = path.read_text(encoding="utf-8")
    assert _run_main(monkeypatch, "--refresh", path) == 1
    said = capsys.readouterr().out
    assert "the sh block at line 5 ended with 2" in said
    assert "missing-file" in said
    assert said.count("echo after") == 1, "the block is shown"
    assert "never" not in said
    assert path.read_text(encoding="utf-8") == before


def test_a_python_block_that_raises_fails(tmp_path: Path) -> None:
    page = read_page(_page(tmp_path, "```python\nraise ValueError('three')\n```\n"))
    with pytest.raises(BlockFailed, match="python block at line 5 ended with 1(.|\n)*ValueError: three"):
        run_page(page)


def test_a_command_that_is_meant_to_fail_says_with_which_code(tmp_path: Path) -> None:
    run_page(read_page(_page(tmp_path, "```sh\n(exit 5) || test $? -eq 5\n```\n")))
    with pytest.raises(BlockFailed):
        run_page(read_page(_page(tmp_path, "```sh\n(exit 4) || test $? -eq 5\n```\n")))


def test_a_page_that_is_never_run_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _page(tmp_path, "```sh\nexit 1\n```\n", "<!-- run: never, because it needs a real NPU -->")
    assert _run_main(monkeypatch, path) == 0
    assert "not run: it needs a real NPU" in capsys.readouterr().out


def test_needs_are_read_and_unknown_ones_are_an_error(tmp_path: Path) -> None:
    page = read_page(_page(tmp_path, "", "<!-- run: slow, needs: qnn hf -->"))
    assert (page.kind, page.needs) == ("slow", ("qnn", "hf"))
    with pytest.raises(PageError, match="nothing is known about `moon`"):
        missing_needs(read_page(_page(tmp_path, "", "<!-- run: slow, needs: moon -->")))


@pytest.mark.parametrize(
    "header", ["<!-- run: often -->", "<!-- run: never -->", "<!-- run: quick, because of me -->", "<!-- run: -->"]
)
def test_a_header_that_says_nothing_known_is_an_error(tmp_path: Path, header: str) -> None:
    with pytest.raises(PageError):
        read_page(_page(tmp_path, "", header))


def test_a_page_without_a_header_has_no_kind_and_one_with_an_open_fence_is_an_error(tmp_path: Path) -> None:
    assert read_page(_page(tmp_path, "", "")).kind is None
    with pytest.raises(PageError, match="never closed"):
        read_page(_page(tmp_path, "```sh\necho one\n"))


def test_an_unknown_name_is_an_error_that_lists_the_pages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_main(monkeypatch, "no-such-page") == 2
    assert "tutorial" in capsys.readouterr().err


def test_list_shows_the_pages_of_a_kind(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_main(monkeypatch, "--list", "--kind", "slow") == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {"slow"}


def test_long_outputs_keep_as_many_lines_around_the_dots(tmp_path: Path) -> None:
    said = "".join(f"line {n}\n" for n in range(9))
    assert shorten(said, "old\nold\n...\nold\n") == "line 0\nline 1\n...\nline 8\n"
    assert shorten(said, "old\n...\n") == "line 0\n...\n"
    assert shorten("one\n", "old\nold\n...\n") == "one\n"
    assert shorten(said, "old\n") == said


def test_paths_of_the_machine_are_not_shown(tmp_path: Path) -> None:
    text = f"wrote {tmp_path}/empty/out/model.onnx\nin {tmp_path}/cache/objects  \n{sys.prefix}/bin/winml\n"
    assert normalise(text, tmp_path) == "wrote out/model.onnx\nin ~/.cache/winml/objects\n.venv/bin/winml\n"


def test_a_block_that_does_not_end_is_ended_and_fails(tmp_path: Path) -> None:
    done = run_block(Block("sh", "exec sleep 600", 1, 0, 0), tmp_path, {"PATH": "/usr/bin:/bin"}, timeout_s=0.5)
    assert done.returncode != 0
    assert done.stdout == "\nended after 0.5 s\n"
