"""`winml support` as a user starts it: three models that no recipe names, one of them blocked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from program import failed, valid, winml

import hf_zoo
import sandbox_zoo
import support_zoo
from published import validator
from winml.modelkit import sample
from winml.modelkit.core.values import read
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.render.support import probe_text
from winml.modelkit.support.probe_result import ProbeResult

UNSANDBOXED = () if sandbox_zoo.available() else ("--unsandboxed",)
pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("support-hf")]


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contributions for a text model, a model that needs code, and one that the recipe changes nothing for."""
    folder = tmp_path_factory.mktemp("batch")
    env = {**os.environ, **hf_zoo.ONE_THREAD}
    subprocess.run(
        [sys.executable, support_zoo.__file__, folder, "electra", "qformer", "bart_classifier"],
        check=True, capture_output=True, timeout=500, env=env,
    )  # fmt: skip
    models = [word for name in (folder / "electra", folder / "qformer", sample.MODEL) for word in ("-m", name)]
    result = winml("support", "produce", *models, "-p", "dynamic", "-o", folder / "out", "--json", env=env)
    assert "1 of 3 models are supported" in failed(result, 6)
    return folder


def test_a_batch_says_what_became_of_every_model(batch: Path) -> None:
    table = valid((batch / "out" / "batch.json").read_text(encoding="utf-8"))
    assert [(m["status"], m["reached"]) for m in table["models"]] == [
        ("RUN", "L2"), ("BLOCKED-UPSTREAM", None), ("OUT-OF-SCOPE", "L2"),
    ]  # fmt: skip
    assert "Blip2QFormerModel accepts none of 4 sets of inputs" in table["models"][1]["reason"]
    assert "no measured effect" in table["models"][2]["reason"]
    assert "BLOCKED-UPSTREAM" in (batch / "out" / "batch.md").read_text(encoding="utf-8")


def test_contributions_fit_their_published_schemas(batch: Path) -> None:
    for folder in ("electra", "qformer"):
        made = batch / "out" / folder
        valid((made / "contribution.json").read_text(encoding="utf-8"))
        valid((made / "recipe.json").read_text(encoding="utf-8"))
        for path in made.glob("evidence/*.json"):
            if not path.name.endswith(".result.json"):
                valid(path.read_text(encoding="utf-8"))
        for path in made.glob("findings/*.json"):
            finding = json.loads(path.read_text(encoding="utf-8"))
            knowledge = {"schema": "winml/model-knowledge/1", "family": folder, "findings": [finding]}
            validator("model-knowledge").validate(knowledge)


def test_a_recipe_for_a_new_family_is_approved_after_running_it_again(batch: Path) -> None:
    made = batch / "out" / "electra"
    claimed = json.loads((made / "contribution.json").read_text(encoding="utf-8"))
    assert claimed["numbers"]["export"]["difference"] < 1e-3, "agrees with PyTorch"
    assert claimed["effect"]["kind"] == "size"
    value = valid(winml("support", "review", made, *UNSANDBOXED, "--json").stdout)
    assert value["verdict"] == "APPROVE"
    assert all(row["contradictions"] == [] for row in value["rerun"])


def test_a_probe_of_an_unknown_architecture_proposes_inputs_to_write_down(batch: Path) -> None:
    probed = valid((batch / "out" / "qformer" / "evidence" / "probe.result.json").read_text(encoding="utf-8"))
    assert "unknown-inputs" in [o["name"] for o in probed["obstacles"] if o["applies"]]
    found = probed["skeleton"]
    assert (found["class"], found["to_fill"]) == ("Blip2QFormerModel", ["query_embeds"])
    assert set(found["inputs"]) == {"query_embeds", "attention_mask"}
    assert '"query_embeds": {"dtype": "float32"' in probe_text(read(ProbeResult, probed))


def test_a_blocked_model_is_blocked_again_and_asks_for_changes(batch: Path) -> None:
    result = winml("support", "review", batch / "out" / "qformer", *UNSANDBOXED, "--json")
    assert "REQUEST_CHANGES: ladder: L0 is CLI-BLOCKED" in failed(result, 5)
    value = json.loads(result.stdout)
    assert {row["step"] for row in value["rerun"]} >= {"probe", "build-recipe"}
    assert all(row["contradictions"] == [] for row in value["rerun"])


def test_the_recipe_of_bart_classifiers_exports_what_agrees_with_pytorch(batch: Path, tmp_path: Path) -> None:
    recipe = recipes.load_recipes()["bart-end-token"]
    specs = tmp_path / "specs.json"
    specs.write_bytes(files.text(recipe.export.input_specs))
    words = recipe.export.words(str(specs))
    value = valid(winml("export", "-m", batch / "bart_classifier", *words, "-o", tmp_path / "out", "--json").stdout)
    assert value["parts"][0]["metadata"]["parity"]["status"] == "passed"


def test_what_is_no_contribution_is_a_wrong_request(tmp_path: Path) -> None:
    result = winml("support", "review", tmp_path, "--json")
    assert "not a contribution" in failed(result, 2)
    assert json.loads(result.stdout)["verdict"] == "REJECT"
