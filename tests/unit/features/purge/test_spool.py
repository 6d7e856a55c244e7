"""A purge removes from the spool what quotes a purged text in the workspace of the request, and nothing else."""

import pytest

from config.paths import SPOOL_ENDING, WORKSPACE_HEADER
from pipeline.features.purge.usecases import scrub_spool
from web.hooks.spool.files import SpooledRequest, add_request, list_files, read_request

MARK = "flumadiddle"
BATCH = "/v1/memories/batch"


@pytest.fixture
def add(tmp_path):
    """Put a request into the spool."""

    def add(path, body, workspace="alpha"):
        headers = {WORKSPACE_HEADER: workspace} if workspace else {}
        return f"{add_request(str(tmp_path), SpooledRequest('POST', path, headers, body))}{SPOOL_ENDING}"

    return add


@pytest.fixture
def scrub(tmp_path):
    """Remove what quotes the word in a workspace; return the bodies that are left."""

    def scrub(workspace="alpha"):
        scrub_spool(tmp_path / "spool", lambda name, text: name == workspace and MARK in text)
        return [read_request(str(tmp_path), file).body for file in list_files(str(tmp_path))]

    return scrub


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"/v1/facts/{MARK}/port", {"value": 1}),
        (f"/v1/facts/shop/the%20{MARK}", {"value": 1}),
        (f"/v1/facts/shop/{MARK[0]}%6Cumadiddle", {"value": 1}),
        ("/v1/memories", {"content": f"The {MARK} is blue"}),
        ("/v1/memories", {"content": "x", "metadata": {"deep": [{"er": MARK}]}}),
        ("/v1/memories", {"content": "x", "metadata": {MARK: 1}}),
        (BATCH, {"items": [{"content": MARK}]}),
    ],
)
def test_request_of_the_same_workspace_is_deleted(add, scrub, path, body):
    add(path, body)
    other = {"content": "another text"}
    add("/v1/memories", other)
    add(path, body, "beta")
    assert scrub() == [other, body]
    assert scrub("beta") == [other]


def test_only_the_quoting_memories_of_a_batch_are_removed(add, scrub):
    kept = [{"content": "first"}, {"content": "last"}]
    add(BATCH, {"items": [kept[0], {"content": f"The {MARK}"}, kept[1]], "session_id": "s1"})
    assert scrub() == [{"items": kept, "session_id": "s1"}]


def test_items_of_another_request_are_no_batch(add, scrub):
    add("/v1/memories", {"items": [{"content": "x"}, {"content": MARK}]})
    assert scrub() == []


def test_file_that_quotes_nothing_is_not_rewritten(add, scrub, tmp_path):
    file = tmp_path / "spool" / add(BATCH, {"items": [{"content": "first"}]})
    before = file.stat()
    assert scrub() == [{"items": [{"content": "first"}]}]
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_request_without_a_workspace_is_asked_about_without_one(add, scrub, tmp_path):
    add("/v1/memories", {"content": MARK}, None)
    asked = []
    scrub_spool(tmp_path / "spool", lambda name, _text: asked.append(name))
    assert set(asked) == {None}
    assert scrub(None) == []
