"""A day of use leaves no word of a memory in any file of an encrypted data directory, whatever a word looks like."""

import contextlib
import json
from collections.abc import Iterator

import pytest

from pipeline.features.encryption.usecases import choose_key, decrypt_home, describe_encryption, encrypt_home
from pipeline.text.tokens import search_tokens
from tests.fakes.client import CheckedClient
from tests.fakes.homes import SHARED, Home
from tests.fakes.in_process import digest_all, flush_notes, open_web, open_worker, run_job
from web.hooks.claude_code import HANDLERS
from web.http.app import create_app

pytestmark = [pytest.mark.files, pytest.mark.timeout(300)]

JOBS = (
    *("sweep", "snapshot", "segment", "vectors", "duplicates", "edges", "arcs", "predict", "decay", "archive"),
    *("consolidate", "lessons", "reflect", "layout", "health"),
)
# Each part of the day has distinctive words; a plural is stemmed, a humped name and a path are split.
WORDS = ("Quokkaberries", "ZanzibarPelmet", "crumhornlike", "Übermurmeltiere", "wombatish/tarpaulins.py")


def list_forms(word: str) -> set[bytes]:
    """Return every spelling of a word that a file could contain."""
    texts = {word, word.lower(), word.upper(), word.casefold(), json.dumps(word)[1:-1]}
    texts |= {token for token in search_tokens(word) if len(token) > 5}
    return {text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-16-le", "utf-16-be")}


def find_words(root, words) -> list[tuple[str, bytes]]:
    """List the files, by name and form, that contain any of some words in their bytes or their names."""
    forms = {form for word in words for form in list_forms(word)}
    files = [file for file in root.rglob("*") if file.is_file()]
    assert files
    return sorted(
        (str(file.relative_to(root)), form)
        for file in files
        for form in forms
        if form in file.read_bytes() or form in file.name.encode()
    )


@contextlib.contextmanager
def running(settings) -> Iterator[tuple[CheckedClient, object, object]]:
    """Run a web server and a worker of a data directory in this process."""
    container, worker = open_web(settings), open_worker(settings)
    try:
        yield CheckedClient(create_app(container), container.token), container, worker
    finally:
        worker.close()
        container.close()


def call_tool(client, name, **arguments):
    """Call an MCP tool over HTTP."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    headers = client.auth | {"Accept": "application/json, text/event-stream", "X-Reverie-Client": "mcp"}
    answer = client.browser().post("/mcp", json=body, headers=headers)
    assert answer.status_code == 200, answer.get_data(as_text=True)


def live_a_day(settings, words, remote, monkeypatch):
    """Use a data directory by every route: writes, hooks, tools, errors with texts in them, jobs, and a restart."""
    first, second, third, fourth, fifth = words
    with running(settings) as (client, container, worker):
        lesson = client.write(f"Never restart the {first} service at night.", kind="lesson", session_id="s1")
        client.write(f"The {second} listens on port 8123. {fifth} starts it.", session_id="s1")
        client.write(f"I prefer {third} music.", scope={"kind": "user"})
        client.put("/v1/facts/payments/owner", {"value": f"{fourth} GmbH"})
        client.post("/v1/goals", {"title": f"Replace the {second}"})
        for text in ("deploys on Tuesdays", "deploys every Tuesday", "is deployed by hand"):
            client.write(f"{first}: {second} {text}", session_id="s2", tags=[third])
        call_tool(client, "remember_batch", items=[{"content": f"{fourth} keeps {first}"}])
        call_tool(client, "recall", query=f"where is {second}")
        said = [{"role": "user", "content": f"Please always call {first} by {third}."}]
        client.post("/v1/turns", {"session_id": "s1", "messages": said})
        client.patch("/v1/sessions/s1", {"name": f"The day of {second}"})
        for event in HANDLERS:
            fields = {"prompt": f"Remember that: {first} needs {fourth}", "tool_name": "Bash", "source": "startup"}
            tool = {"command": f"make {fifth}", "file_path": f"/src/{fifth}"}
            done = {"tool_input": tool, "tool_response": {"stderr": f"no such {first}"}, "error": f"{second} failed"}
            client.post(
                "/hooks/claude-code", {"hook_event_name": event, "session_id": "s1", "cwd": "", **fields, **done}
            )
            asked = {"prompt": f"how does the {second} restart?", "hook_event_name": event}
            client.post("/hooks/codex", {"session_id": "s3", "cwd": "", **asked})
        client.post("/hooks/claude-code", {"hook_event_name": f"On{first}", "session_id": "s1"})
        client.recall(f"which port does {second} use?")
        client.post("/v1/prepare", {"message": f"restart the {first} service"})
        flush_notes(container)
        digest_all(worker)
        worker.operations.record_error("digest.embed", f"ValueError: no vector for '{first}'", workspace="default")
        with monkeypatch.context() as broken:
            broken.setattr("pipeline.features.memories.usecases.get_memory", _fail_with(f"what of {third}"))
            client.post("/hooks/claude-code", {"hook_event_name": "Stop", "session_id": "s1"})
        for name in JOBS:
            run_job(worker, "default", name)
        digest_all(worker)
        client.patch(f"/v1/memories/{lesson}", {"content": f"Never restart {first} or {second} at night."})
        digest_all(worker)
    _send_to_remote(settings, remote)
    with running(settings) as (client, _, worker):
        assert client.recall(f"which port does {second} listen on")["results"]
        assert client.recall(first)["channels"]["lexical"]["state"] == "ok"
        client.write(f"After the restart {first} is green")
        run_job(worker, "default", "snapshot")


def _fail_with(text):
    def fail(*_arguments, **_named):
        raise ValueError(text)

    return fail


def _send_to_remote(settings, remote):
    home = Home(settings.paths.root)
    with contextlib.closing(home):
        if not home.sync.status():
            home.sync.invite()
            home.sync.add(SHARED, f"dir:{remote}")
        home.exchange()


def test_no_word_of_a_day_is_in_any_file(home, key_file, tmp_path, monkeypatch):
    remote = tmp_path / "remote"
    remote.mkdir()
    paths = home.paths
    choose_key(paths, key_file)
    encrypt_home(paths)
    live_a_day(home, WORDS, remote, monkeypatch)
    assert find_words(paths.root, WORDS) == []
    assert find_words(remote, WORDS) == []


def test_encrypting_erases_plain_files_every_time(home, key_file, tmp_path, monkeypatch):
    remote = tmp_path / "remote"
    remote.mkdir()
    paths = home.paths
    live_a_day(home, WORDS, remote, monkeypatch)
    paths.logs.mkdir(exist_ok=True)
    (paths.logs / "worker.log").write_text(f"ValueError: {WORDS[0]}\n")
    # The test would prove nothing if a plain data directory had none of them.
    assert {name.rpartition("/")[2] for name, _ in find_words(paths.root, WORDS)} >= {
        *("events.sqlite", "home.sqlite", "worker.log", "words.vocabulary.json"),
    }
    choose_key(paths, key_file)
    encrypt_home(paths)
    assert find_words(paths.root, WORDS) == []
    assert describe_encryption(paths).plain == ()
    later = tuple(f"later{word}" for word in WORDS)
    live_a_day(home, later, remote, monkeypatch)
    assert find_words(paths.root, (*WORDS, *later)) == []
    decrypt_home(paths)
    with running(home) as (client, _, _):
        assert client.recall(f"which port does {WORDS[1]} listen on")["results"]
        assert client.recall(WORDS[0])["channels"]["lexical"]["state"] == "ok"
    assert find_words(paths.root, later)
    encrypt_home_again(paths, key_file)
    assert find_words(paths.root, (*WORDS, *later)) == []


def encrypt_home_again(paths, key_file):
    assert not choose_key(paths, key_file), "the key is the one from before"
    encrypt_home(paths)
