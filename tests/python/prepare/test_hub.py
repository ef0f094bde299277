# SPDX-License-Identifier: Apache-2.0
"""Downloads from a local hub over real HTTP, with the real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
import pytest

from ct2_triton.prepared_model import PreparedModel
from support.hub_server import HubServer, running_hub
from support.no_pytorch import prepare_without_pytorch
from support.tiny import tiny_checkpoint, tiny_engine_model
from tiny_models import TinyOptions
from tiny_packages import make_ctranslate2

HUB_ID = "test-org/tiny-nllb"
CARD = "---\nlanguage: multilingual\nlicense: cc-by-nc-4.0\n---\n# A model card\n"
# huggingface_hub writes downloads in chunks of this size: less is not kept when a transfer breaks.
CHUNK_BYTES = 10 * 1024 * 1024


@dataclass
class Workplace:
    """A hub and an empty cache, and the command run against them."""

    hub: HubServer
    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "repository" / "tiny-nllb"

    def run(
        self, *arguments: str, endpoint: str | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HF_")
        }
        environment["HF_ENDPOINT"] = endpoint or self.hub.url
        environment["HF_HOME"] = str(self.folder / "cache")
        environment.update(variables)
        command = "import sys; from ct2_triton.cli import prepare; sys.exit(prepare())"
        return subprocess.run(
            [sys.executable, "-c", command, *arguments, "--model-repository", self.model.parent],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    with running_hub() as hub:
        yield Workplace(hub, tmp_path)


def serve_checkpoint(workplace: Workplace) -> Path:
    """Puts a tiny checkpoint with a model card and files nobody needs on the hub."""
    folder = workplace.folder / "published"
    folder.mkdir()
    for path in tiny_checkpoint("nllb").iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    for name in ("tf_model.h5", "flax_model.msgpack", "rust_model.ot", "pytorch_model.bin"):
        (folder / name).write_bytes(b"not needed")
    return folder


def publish_converted(workplace: Workplace, options: TinyOptions | None = None) -> Path:
    """A folder of a converted model, whose preparation takes no PyTorch and little time."""
    converted = tiny_engine_model("nllb", options)
    return make_ctranslate2(
        tiny_checkpoint("nllb", options), converted, workplace.folder / "published"
    )


def assert_failed(result: subprocess.CompletedProcess[str], workplace: Workplace) -> str:
    """The command failed with one line, and left nothing in the repository."""
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert not workplace.model.parent.exists()
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ct2-prepare: ")
    return last


def test_prepares_from_the_hub(workplace: Workplace) -> None:
    repository = workplace.hub.add(HUB_ID, serve_checkpoint(workplace))
    result = workplace.run(HUB_ID)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(workplace.model)
    assert "licence cc-by-nc-4.0" in result.stderr
    assert "Fetching" in result.stderr  # the progress bar
    assert "100%" in result.stderr
    assert str(workplace.folder) not in (workplace.model / "ct2_model.json").read_text("utf-8")
    model = PreparedModel.read(workplace.model)
    assert model.source.id == HUB_ID
    assert model.source.revision == "main"
    assert model.source.commit == repository.revisions["main"]
    assert model.source.license == "cc-by-nc-4.0"
    fetched = {r.path.split("/")[-1] for r in workplace.hub.requests if r.method == "GET"}
    assert "model.safetensors" in fetched
    unneeded = {"tf_model.h5", "flax_model.msgpack", "rust_model.ot", "pytorch_model.bin"}
    assert not fetched & unneeded


def test_a_converted_repository_and_its_cache_without_network(workplace: Workplace) -> None:
    folder = publish_converted(workplace)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    (folder / "shortlist.onnx").write_bytes(b"not needed")
    repository = workplace.hub.add(HUB_ID, folder)
    result = workplace.run(HUB_ID)
    assert result.returncode == 0, result.stderr
    assert f"{HUB_ID}: CTranslate2 model, licence cc-by-nc-4.0" in result.stderr
    assert PreparedModel.read(workplace.model).source.commit == repository.revisions["main"]
    assert not workplace.hub.downloads("shortlist.onnx")
    offline = workplace.run(HUB_ID, "--force", endpoint="http://127.0.0.1:9")
    assert offline.returncode == 0, offline.stderr
    assert PreparedModel.read(workplace.model).source.commit == repository.revisions["main"]


def test_a_quiet_download_says_nothing(workplace: Workplace) -> None:
    workplace.hub.add(HUB_ID, publish_converted(workplace))
    result = workplace.run(HUB_ID, "-q")
    assert (result.returncode, result.stderr) == (0, "")
    assert PreparedModel.read(workplace.model).source.id == HUB_ID


def test_nothing_is_downloaded_that_cannot_be_converted(workplace: Workplace) -> None:
    workplace.hub.add(HUB_ID, serve_checkpoint(workplace))
    variables = {"HF_ENDPOINT": workplace.hub.url, "HF_HOME": str(workplace.folder / "cache")}
    arguments = [HUB_ID, "--model-repository", str(workplace.model.parent)]
    result = prepare_without_pytorch(workplace.folder, arguments, **variables)
    message = assert_failed(result, workplace)
    assert "needs more: not installed: torch, transformers; pip install" in message
    assert "PIP_EXTRA_INDEX_URL names PyTorch's CPU index" in message
    assert [r.path for r in workplace.hub.requests] == [f"/api/models/{HUB_ID}"]


def test_a_revision_is_asked_for_and_recorded(workplace: Workplace) -> None:
    repository = workplace.hub.add(HUB_ID, publish_converted(workplace))
    commit = "1" * 40
    repository.revisions |= {"v1.0": commit, commit: commit}
    result = workplace.run(HUB_ID, "--revision", "v1.0")
    assert result.returncode == 0, result.stderr
    source = PreparedModel.read(workplace.model).source
    assert (source.revision, source.commit) == ("v1.0", commit)
    assert not any(repository.revisions["main"] in r.path for r in workplace.hub.requests)


def cut_after_a_chunk(workplace: Workplace, *more: int) -> None:
    """Puts a model on the hub whose first transfer breaks off, and further ones after `more`."""
    # float32 rows of 64 numbers: 15 MB, more than one chunk
    folder = publish_converted(workplace, TinyOptions(vocab_size=60_000))
    repository = workplace.hub.add(HUB_ID, folder)
    repository.cuts["model.bin"] = [CHUNK_BYTES + 1000, *more]


def test_a_cut_transfer_is_resumed_in_the_same_run(workplace: Workplace) -> None:
    cut_after_a_chunk(workplace)
    result = workplace.run(HUB_ID)
    assert result.returncode == 0, result.stderr
    ranges = [r.range for r in workplace.hub.downloads("model.bin")]
    assert ranges == [None, f"bytes={CHUNK_BYTES}-"]


@pytest.mark.skipif(
    not huggingface_hub.__version__.startswith("0."), reason="later ones resume more often"
)
def test_a_download_that_keeps_breaking_is_resumed_by_the_next_run(workplace: Workplace) -> None:
    cut_after_a_chunk(workplace, 0, 0)
    message = assert_failed(workplace.run(HUB_ID), workplace)
    assert "broke off" in message
    assert "again to resume" in message
    tried = len(workplace.hub.downloads("model.bin"))
    result = workplace.run(HUB_ID)
    assert result.returncode == 0, result.stderr
    ranges = [r.range for r in workplace.hub.downloads("model.bin")[tried:]]
    assert ranges == [f"bytes={CHUNK_BYTES}-"]


def test_no_such_repository(workplace: Workplace) -> None:
    message = assert_failed(workplace.run("test-org/no-such-model"), workplace)
    assert "no model test-org/no-such-model" in message
    assert "spelling" in message


def test_no_such_revision(workplace: Workplace) -> None:
    workplace.hub.add(HUB_ID, serve_checkpoint(workplace))
    message = assert_failed(workplace.run(HUB_ID, "--revision", "v9"), workplace)
    assert f"{HUB_ID} has no revision 'v9'" in message


def test_a_gated_repository(workplace: Workplace) -> None:
    workplace.hub.add(HUB_ID, serve_checkpoint(workplace)).gated = True
    message = assert_failed(workplace.run(HUB_ID), workplace)
    assert f"accept its terms at {workplace.hub.url}/{HUB_ID}" in message
    assert "HF_TOKEN" in message


def test_a_file_that_is_listed_but_missing(workplace: Workplace) -> None:
    repository = workplace.hub.add(HUB_ID, serve_checkpoint(workplace))
    repository.missing.add("tokenizer.json")
    message = assert_failed(workplace.run(HUB_ID), workplace)
    assert "tokenizer.json" in message


def test_a_repository_without_weights_is_refused_before_any_download(workplace: Workplace) -> None:
    folder = serve_checkpoint(workplace)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").unlink()
    workplace.hub.add(HUB_ID, folder)
    message = assert_failed(workplace.run(HUB_ID), workplace)
    assert "no PyTorch weights" in message
    assert not any("/resolve/" in r.path for r in workplace.hub.requests)


def test_without_network_the_message_says_what_to_do(workplace: Workplace) -> None:
    message = assert_failed(workplace.run(HUB_ID, endpoint="http://127.0.0.1:9"), workplace)
    for help_with in ("local directory", "HF_HOME", "HF_ENDPOINT", "http://127.0.0.1:9"):
        assert help_with in message


def test_offline_mode_asks_nobody(workplace: Workplace) -> None:
    workplace.hub.add(HUB_ID, serve_checkpoint(workplace))
    message = assert_failed(workplace.run(HUB_ID, HF_HUB_OFFLINE="1"), workplace)
    assert "HF_HOME" in message
    assert workplace.hub.requests == []


def test_a_word_that_is_no_id_and_no_folder(workplace: Workplace) -> None:
    message = assert_failed(workplace.run("no--such--folder"), workplace)
    assert "no file or folder no--such--folder" in message
