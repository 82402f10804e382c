from __future__ import annotations

from winml.modelkit.cli.matrix_request import _command


def test_the_command_to_go_on_with_is_the_one_that_was_given_without_how_to_go_on() -> None:
    given = ["matrix", "run", "--sample", "--run-stamp", "s1", "--continue", "--json", "-o", "my out", "--run-stamp=s2"]
    assert _command(given) == "winml matrix run --sample -o 'my out'"
