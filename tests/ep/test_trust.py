"""Which session settings a document may hold."""

from __future__ import annotations

import re

import pytest

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.ep import catalog
from winml.modelkit.ep.trust import NOTHING, Trust, Used, option_to_repeat, read_names

TOUCHES_FILES = re.compile(r"path|dir|file|dump|trace|profil|cache|package|config|xclbin|table|log|key|skip_")
DATA_ALL_THE_SAME = {
    "disable_file_mapped_weights": "whether weights are mapped, not which file",
    "storageBufferCacheMode": "a kind of cache in memory",
    "nv_profile_min_shapes": "shapes",
    "nv_profile_max_shapes": "shapes",
    "nv_profile_opt_shapes": "shapes",
    "nv_multi_profile_enable": "profiles are sets of shapes",
}
ROWS = [(info.name, name, option) for info in catalog.TABLE for name, option in info.options.items()]


def refusal(trust: Trust, name: str, value: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        trust.gate("build_config.json").check_option(name, value, "session.ep_options")
    return caught.value


@pytest.mark.parametrize(("ep", "name", "option"), ROWS, ids=[f"{ep}-{name}" for ep, name, _ in ROWS])
def test_whatever_sounds_like_a_file_is_of_the_command_line(ep: str, name: str, option: catalog.Option) -> None:
    if option.type == "path" or (TOUCHES_FILES.search(name.lower()) and name not in DATA_ALL_THE_SAME):
        if (ep, name) == ("vitisai", "log_level"):
            return  # a choice of words
        assert not option.allows_in_document("1")


def test_an_option_is_of_the_command_line_until_somebody_says_otherwise() -> None:
    assert catalog.Option("text").trust == "command_line"


def test_an_option_that_any_provider_reads_as_a_file_is_refused_for_all() -> None:
    assert "`--trust-options target`" in (refusal(NOTHING, "target", "x").hint or "")


def test_a_refusal_names_the_option_its_value_and_both_ways_out() -> None:
    error = refusal(NOTHING, "backend_path", "/tmp/evil.so")
    assert error.exit_code == 2
    assert error.message == (
        "`session.ep_options.backend_path` may be set on the command line only, because it names a library or a file "
        "or makes the provider write one: `/tmp/evil.so`"
    )
    assert error.hint == (
        "add `--trust-options backend_path` if you trust that value, or pass it yourself: "
        "`--ep-options backend_path=VALUE`"
    )


def test_an_unknown_option_is_refused_with_the_nearest_names() -> None:
    error = refusal(NOTHING, "backend_pth", "x")
    assert error.message == "`session.ep_options.backend_pth` is an option of no execution provider"
    assert (error.hint or "").startswith("did you mean `backend_path`")


def test_harmless_options_pass() -> None:
    gate = NOTHING.gate("x")
    for name, value in (("soc_model", "60"), ("htp_performance_mode", "burst"), ("num_of_threads", "2")):
        gate.check_option(name, value, "session.ep_options")


@pytest.mark.parametrize(
    "entry",
    [
        "ep.context_file_path",
        "ep.context_enable",
        "session.collect_node_memory_stats_to_file",
        "session.debug_layout_transformation",
        "session.load_model_format",
        "session.model_external_initializers_file_folder_path",
        "session.optimized_model_external_initializers_file_name",
        "ep.qnnexecutionprovider.backend_path",
        "made.up",
    ],
)
def test_config_entries_that_are_not_listed_are_refused(entry: str) -> None:
    with pytest.raises(RequestError, match="may be set on the command line only"):
        NOTHING.gate("x").check_entry(entry, "1", "session.config_entries")


def test_what_knobs_and_comparisons_write_is_listed() -> None:
    from winml.modelkit.measuring.rounds import SPINNING
    from winml.modelkit.session.knobs import DISABLED

    assert {SPINNING, DISABLED} <= catalog.DOCUMENT_ENTRIES


def test_a_trusted_setting_passes_and_is_told() -> None:
    used: list[Used] = []
    gate = Trust(frozenset({"backend_path", "ep.context_enable"}), on_use=used.append).gate("a/build_config.json")
    gate.check_option("backend_path", "/x.so", "session.ep_options")
    gate.check_entry("ep.context_enable", "1", "session.config_entries")
    assert [str(one) for one in used] == [
        "trusted from `a/build_config.json`: backend_path=/x.so",
        "trusted from `a/build_config.json`: ep.context_enable=1",
    ]


def test_json_is_data_and_its_file_is_not() -> None:
    NOTHING.gate("x").check_option("op_affinity", '{"op_type": {}}', "session.ep_options")
    assert "command line only" in refusal(NOTHING, "op_affinity", "/etc/passwd").message


def test_a_request_of_our_own_needs_no_trust() -> None:
    OWN_REQUEST.check_option("backend_path", "/x.so", "session.ep_options")
    OWN_REQUEST.check_entry("ep.context_enable", "1", "session.config_entries")


def test_names_are_separated_by_commas_and_must_exist() -> None:
    assert read_names(["backend_path, op_packages", "session.any_entry"]) == {
        "backend_path",
        "op_packages",
        "session.any_entry",
    }
    with pytest.raises(RequestError, match="names an unknown option `backend_paht`") as caught:
        read_names(["backend_paht"])
    assert "`backend_path`" in (caught.value.hint or "")


def test_the_next_command_carries_what_a_build_was_given() -> None:
    assert option_to_repeat({"soc_model": "60"}, NOTHING) == ""
    assert (
        option_to_repeat({"backend_path": "x", "op_packages": "y"}, NOTHING)
        == " --trust-options backend_path,op_packages"
    )
