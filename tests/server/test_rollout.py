# SPDX-License-Identifier: Apache-2.0
"""Versions promoted and rolled back on a real server that translates meanwhile."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from support.metrics import fresh, scrape
from support.models_command import ct2_models
from support.servers import EXPLICIT, MakeServer, ServerStack
from support.waiting import wait_until

pytestmark = pytest.mark.server

SENTENCE = "The ticket office opens at 5:45."
FAMILY = ("demo", "demo-stream", "demo-text")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo in two versions; the first is served."""
    folder = tmp_path_factory.mktemp("rollout") / "repository"
    prepare(PrepareOptions("demo", folder))
    prepare(PrepareOptions("demo", folder, as_version=2))
    record = folder / "demo" / "2" / "ct2_model.json"
    content = json.loads(record.read_text())
    content["source"] |= {"id": "owner/newer", "commit": "fedcba9876543210"}
    record.write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def served(repository: Path) -> Iterator[TritonServer]:
    with ServerStack() as stack:
        arguments = ["--model-control-mode=explicit", "--load-model=demo"]
        yield stack.start(repository, server_arguments=arguments)


def _ready(server: TritonServer) -> set[str]:
    return {state.version for state in server.model_states() if state.state == "READY"}


def _requests(server: TritonServer, version: str) -> float:
    """What /metrics says of the requests that a version has answered; 0 while it is not loaded."""
    return scrape(server, "demo", version).by("ct2_requests_total").get("ok", 0.0)


class Traffic:
    """Two threads that translate until the block ends; what fails, fails the block."""

    def __init__(self, translate: Callable[[], str]) -> None:
        self.answers: list[str] = []
        self._translate = translate
        self._failures: list[BaseException] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(2)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        assert not self._failures, self._failures

    def go_on(self, answers: int = 20) -> None:
        """Waits for so many further answers."""
        wanted = len(self.answers) + answers
        wait_until(lambda: len(self.answers) >= wanted or bool(self._failures))
        assert not self._failures, self._failures

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self.answers.append(self._translate())
        except BaseException as error:
            self._failures.append(error)


def test_promoted_and_rolled_back_under_traffic(served: TritonServer, repository: Path) -> None:
    address = served.grpc_url
    with SyncTranslationClient(served.grpc_url, "demo", repository=repository) as client:

        def translate() -> str:
            german = client.translate(SENTENCE, source="en", targets="de")
            return german.text

        expected = translate()
        with Traffic(translate) as traffic:
            said = ct2_models(repository, "promote", "demo", "2", "--url", address)
            assert said == "demo: serves 2, before 1\n"
            wait_until(lambda: _ready(served) == {"2"})
            traffic.go_on()
            wait_until(lambda: _requests(served, "2") >= 20)
            listed = ct2_models(repository, "list", "--url", address).splitlines()[1:]
            assert [line.split()[2] for line in listed] == ["no", "yes"]
            assert listed[1].endswith("READY")
            said = ct2_models(repository, "rollback", "demo", "--url", address, "--json")
            assert json.loads(said) == {
                "name": "demo",
                "before": [2],
                "after": [1],
                "followers": [],
            }
            wait_until(lambda: _ready(served) == {"1"})
            traffic.go_on()
        assert set(traffic.answers) == {expected}
    assert "no promotion to roll back" in ct2_models(repository, "rollback", "demo", code=1)
    history = json.loads(ct2_models(repository, "show", "demo", "--json"))["history"]
    assert list(history.values())[-2:] == ["promote 1 -> 2", "rollback 2 -> 1"]
    log = served.log_text().replace('\\"', '"')
    assert 'made of "owner/newer", commit "fedcba9876543210", int8' in log


def test_a_canary_is_promoted_and_rolled_back_under_traffic(
    served: TritonServer, repository: Path
) -> None:
    address = served.grpc_url
    ct2_models(repository, "promote", "demo", "1", "2", "--url", address)
    wait_until(lambda: _ready(served) == {"1", "2"})
    before = {
        version: fresh(served, "demo", version).by("ct2_requests_total").get("ok", 0.0)
        for version in ("1", "2")
    }
    sentences = [f"Platform {number}." for number in range(24)]
    with SyncTranslationClient(
        served.grpc_url, "demo", repository=repository, versions={"1": 0.5, "2": 0.5}
    ) as client:
        rows = client.translate(sentences, source="en", targets=["de", "fr"])
        # Both languages of a sentence, and all sentences of a stream, are of one version.
        by_sentence = [{translation.version for translation in row} for row in rows]
        assert {len(versions) for versions in by_sentence} == {1}
        answered = [versions.pop() for versions in by_sentence]
        assert set(answered) == {"1", "2"}
        again = client.translate(sentences, source="en", targets=["de", "fr"])
        assert [row[0].version for row in again] == answered
        streamed = [
            item.translation.version for item in client.stream(sentences, source="en", targets="de")
        ]
        assert len(streamed) == 24
        assert len(set(streamed)) == 1
        keyed = [
            client.translate(sentence, source="en", targets="de", supersede="talk").version
            for sentence in sentences
        ]
        assert len(set(keyed)) == 1
        for version in ("1", "2"):
            expected = 4 * answered.count(version) + (streamed + keyed).count(version)
            wanted = before[version] + expected
            wait_until(lambda v=version, w=wanted: _requests(served, v) == w)  # type: ignore[misc]
        texts = itertools.cycle(sentences)

        def translate() -> str:
            return str(client.translate(next(texts), source="en", targets="de").version)

        for action, versions in (("promote", {"2"}), ("rollback", {"1", "2"})):
            with Traffic(translate) as traffic:
                named = ["2"] if action == "promote" else []
                ct2_models(repository, action, "demo", *named, "--url", address)
                wait_until(lambda v=versions: _ready(served) == v)  # type: ignore[misc]
                start = len(traffic.answers) + 4  # of two threads, each may have one under way
                traffic.go_on(60)
                assert set(traffic.answers[start:]) == versions
    ct2_models(repository, "rollback", "demo", "--url", address)
    wait_until(lambda: _ready(served) == {"1"})


def _all_ready(server: TritonServer) -> set[tuple[str, str]]:
    ready = (state for state in server.model_states() if state.state == "READY")
    return {(state.name, state.version) for state in ready}


def _of(*versions: str) -> set[tuple[str, str]]:
    """The demo's three models, in these versions."""
    return {(name, version) for name in FAMILY for version in versions}


def test_models_of_text_follow_under_traffic(tmp_path: Path, make_server: MakeServer) -> None:
    prepare(PrepareOptions("demo", tmp_path, io="stream"))
    prepare(PrepareOptions("demo", tmp_path, as_version=2))
    server = make_server(tmp_path, server_arguments=EXPLICIT)
    address = server.grpc_url
    assert _all_ready(server) == _of("1")
    with (
        SyncTranslationClient(server.grpc_url, "demo", repository=tmp_path) as by_ids,
        SyncTranslationClient(server.grpc_url, "demo-text") as by_text,
    ):

        def translate() -> str:
            ids = by_ids.translate(SENTENCE, source="en", targets="de")
            text = by_text.translate(SENTENCE, source="en", targets="de")
            parts = by_ids.stream_text(SENTENCE, source="en", targets="de")
            assert "".join(part.text for part in parts) == text.text == ids.text
            return f"{ids.version}{text.version}"

        assert translate() == "11"
        for action, said, served in (
            (("promote", "demo", "2"), "2, before 1", ("2",)),
            (("rollback", "demo"), "1, before 2", ("1",)),
            (("promote", "demo", "1", "2"), "1, 2, before 1", ("1", "2")),
        ):
            with Traffic(translate) as traffic:
                told = ct2_models(tmp_path, *action, "--url", address)
                assert told == f"demo, demo-text, demo-stream: serves {said}\n"
                wait_until(lambda s=served: _all_ready(server) == _of(*s))  # type: ignore[misc]
                start = len(traffic.answers) + 4  # of two threads, each may have one under way
                traffic.go_on()
                assert set(traffic.answers[start:]) == {2 * served[-1]}
    split = {"1": 0.5, "2": 0.5}
    with SyncTranslationClient(server.grpc_url, "demo-text", versions=split) as client:
        found = client.translate([f"Platform {n}." for n in range(24)], source="en", targets="de")
    assert {one.version for one in found} == {"1", "2"}
    assert "demo-text shares the files of demo and serves its versions" in ct2_models(
        tmp_path, "promote", "demo-text", "2", code=1
    )


def test_what_one_model_does_not_take_all_give_back(
    tmp_path: Path, make_server: MakeServer
) -> None:
    prepare(PrepareOptions("demo", tmp_path, io="stream"))
    prepare(PrepareOptions("demo", tmp_path, as_version=2))
    server = make_server(tmp_path, server_arguments=EXPLICIT)
    config = tmp_path / "demo-stream" / "config.pbtxt"
    whole = config.read_text()
    config.write_text(whole.replace('string_value: "1"', 'string_value: "4"'))
    arguments = ("promote", "demo", "2", "--url", server.grpc_url)
    text = ct2_models(tmp_path, *arguments, code=1)
    assert "cannot load it, so nothing is changed: " in text
    assert "a stream needs " in text
    wait_until(lambda: _all_ready(server) == _of("1"))
    listed = ct2_models(tmp_path, "list").splitlines()[1:]
    assert [line.split()[:3] for line in listed if line.split()[2] == "yes"] == [
        [name, "1", "yes"] for name in sorted(FAMILY)
    ]
    assert "no promotion to roll back" in ct2_models(tmp_path, "rollback", "demo", code=1)
    config.write_text(whole)
    assert ct2_models(tmp_path, *arguments).endswith("serves 2, before 1\n")
    wait_until(lambda: _all_ready(server) == _of("2"))
    log = server.log_text().replace('\\"', '"')
    assert re.search(r"model 'demo-text' version 2: loading .*/demo/2/model', made of ", log)


def test_a_server_that_refuses_leaves_all_as_it_was(
    tmp_path: Path, make_server: MakeServer
) -> None:
    prepare(PrepareOptions("demo", tmp_path))
    prepare(PrepareOptions("demo", tmp_path, as_version=2))
    address = make_server(tmp_path).grpc_url
    config = (tmp_path / "demo" / "config.pbtxt").read_bytes()
    text = ct2_models(tmp_path, "promote", "demo", "2", "--url", address, code=1)
    assert "cannot load it, so nothing is changed: " in text
    assert "explicit model load / unload is not allowed" in text
    assert (tmp_path / "demo" / "config.pbtxt").read_bytes() == config
    assert "no promotion to roll back" in ct2_models(tmp_path, "rollback", "demo", code=1)
    weights = tmp_path / "demo" / "2" / "model" / "model.bin"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    assert "has changed" in ct2_models(tmp_path, "promote", "demo", "2", code=1)
    weights.write_bytes(whole)
    assert "has no version 3; there is: 1, 2" in ct2_models(
        tmp_path, "promote", "demo", "3", code=1
    )
    wrong = ct2_models(tmp_path, "promote", "demo", code=2)
    assert "the following arguments are required: VERSION; see ct2-models promote --help" in wrong
    ct2_models(tmp_path, "promote", "demo", "2", "1")
    assert "serves 1, 2 already" in ct2_models(tmp_path, "promote", "demo", "1", "2", code=1)
    ct2_models(tmp_path, "promote", "demo", "2")
    # A server is asked to load what the folder says already.
    text = ct2_models(tmp_path, "promote", "demo", "2", "--url", address, code=1)
    assert "cannot load it, so nothing is changed: " in text
    assert ct2_models(tmp_path, "rollback", "demo") == "demo: serves 1, 2, before 2\n"
    assert ct2_models(tmp_path, "rollback", "demo") == "demo: serves 1, before 1, 2\n"


def test_a_server_that_shows_no_index_is_told_in_a_line(
    tmp_path: Path, make_server: MakeServer
) -> None:
    prepare(PrepareOptions("demo", tmp_path))
    restricted = "--grpc-restricted-protocol=model-repository:secret=open"
    address = make_server(tmp_path, server_arguments=[restricted]).grpc_url
    for asked in (("list",), ("promote", "demo", "1")):
        [said] = ct2_models(tmp_path, *asked, "--url", address, code=1).splitlines()
        assert f"{address} does not say which models it has: " in said
    listed = ct2_models(
        tmp_path, "list", "--url", address, "--header", "triton-grpc-protocol-secret: open"
    )
    assert listed.splitlines()[1].endswith("READY")


def test_verify_files_holds_a_version_against_its_record(
    tmp_path: Path, make_server: MakeServer
) -> None:
    settings = {"verify_files": "true"}
    prepare(PrepareOptions("demo", tmp_path, settings=settings))
    prepare(PrepareOptions("demo", tmp_path, settings=settings, as_version=2))
    ct2_models(tmp_path, "promote", "demo", "2")
    server = make_server(tmp_path)
    assert _ready(server) == {"2"}
    server.stop()
    damaged = "2/model/model.bin"
    file = tmp_path / "demo" / damaged
    file.write_bytes(file.read_bytes()[:-1])
    server = make_server(
        tmp_path, server_arguments=["--exit-on-error=false", "--strict-readiness=false"]
    )
    assert _ready(server) == set()
    assert f"{damaged} has changed" in server.log_text()
