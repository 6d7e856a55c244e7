"""Every kept data directory opens with all that is in it, and can be used, exported, copied and restored."""

import contextlib
import json

import pytest

from pipeline.features.diagnostics import job as health
from pipeline.features.export import usecases as export
from pipeline.features.snapshots import usecases as snapshots
from pipeline.index import segment
from tests.fakes.kept_directories import FOLDER, NAMES, NEWEST, OLDEST, describe_formats, unpack_directory
from tests.fakes.migrations import next_version
from tests.power.site import Site
from tests.support import keep_directory
from tests.support.keep_directory import ARCHIVED, SECOND_TEXT, SPOOLED, TEXTS
from web.hooks.spool.delivery import SpoolDelivery

pytestmark = pytest.mark.files

WORKSPACE = "default"
PORT = "checkout-service/port"
# Of each directory: the active texts of its workspace "default" that are no facts or goals, an earlier text of one,
# and an archived text.
CONTENTS = {
    OLDEST: (
        {
            "Berta knows the release train",
            "Deploys of the billing service need the VPN",
            "Run the migrations before the rollout",
            "The canal of the payments team is #pay",
            "The staging database listens on port 6543",
            "The staging database runs in the Dublin region",
            "The style guide asks for tabs",
            "The token of the sandbox ends in June",
            "We chose PostgreSQL for the ledger because of its row locks",
        },
        ("The staging database runs in the Dublin region", "The staging database runs in the Frankfurt region"),
        "A note that was archived",
    ),
    **dict.fromkeys(NAMES[1:], ({*TEXTS[:2], TEXTS[3], SECOND_TEXT}, (SECOND_TEXT, TEXTS[2]), ARCHIVED)),
}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def site(name, tmp_path):
    site = Site(unpack_directory(name, tmp_path / "home"))
    yield site
    site.stop()


@contextlib.contextmanager
def open_site(root):
    site = Site(root)
    yield site
    site.stop()


def list_active(site):
    items = site.call("GET", "/v1/memories?limit=100")["items"]
    return {item["content"]: item["id"] for item in items if item["kind"] not in ("keyed_fact", "goal")}


def repair(site):
    """Do what the scheduler asks for after a start."""
    for workspace in site.web.databases.ids():
        site.worker.context(workspace).repair_vectors()
        for job in site.worker.context(workspace).list_needed_jobs():
            site.run(workspace, job)
    site.digest()


def test_every_directory_that_is_kept_is_tested():
    assert {f"{name}.tar.xz" for name in CONTENTS} == {file.name for file in FOLDER.iterdir()}


def test_kept_directory_is_read_with_its_history(site, name):
    texts, (edited, earlier), archived = CONTENTS[name]
    active = list_active(site)
    assert set(active) == texts
    assert archived in site.list_memories(WORKSPACE, archived=True).values()
    values = site.call("GET", f"/v1/facts/{PORT}/history")["items"]
    assert [(item["value"], item["valid_to"] is None) for item in values] == [("8080", False), ("9090", True)]
    record = site.call("GET", f"/v1/memories/{active[edited]}")
    assert earlier in [entry["content"] for entry in record["history"]]
    assert [goal["title"] for goal in site.call("GET", "/v1/goals")["items"]] == ["Ship the new checkout"]
    assert "heron" in str(site.call("GET", "/v1/sessions/search?query=heron"))
    assert site.call("GET", "/v1/people")["items"]


def test_kept_directory_is_searched_by_words_and_meaning(site, name):
    texts, _, archived = CONTENTS[name]
    active = list_active(site)
    for _ in range(2):
        # At once with the index that is there, and again when a worker has looked after it.
        for text in texts:
            assert active[text] in {hit["id"] for hit in site.recall(WORKSPACE, text)}
        assert archived not in {hit["content"] for hit in site.recall(WORKSPACE, archived)}
        repair(site)
    channels = site.call("POST", "/v1/recall", {"query": "style guide"})["channels"]
    assert {channels[channel]["state"] for channel in ("lexical", "dense")} == {"ok"}
    left = health.examine(site.worker.databases.get(WORKSPACE), site.settings.paths.workspace(WORKSPACE))
    assert [problem.says for problem in left] == []


def test_spooled_requests_of_kept_directory_are_delivered(tmp_path):
    with open_site(unpack_directory(NEWEST, tmp_path / "home")) as site:
        assert SPOOLED not in list_active(site)
        SpoolDelivery(site.web, site.client.application, lambda: 1000.0).deliver_all()
        assert SPOOLED in list_active(site)


def test_export_of_kept_directory_contains_everything(site, name, tmp_path):
    texts, _, archived = CONTENTS[name]
    file = tmp_path / "memories.jsonl"
    export.export_lines(site.settings.paths, site.web.databases, file, [WORKSPACE])
    exported = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {entry.get("content") for entry in exported} >= {*texts, archived}
    with open_site(tmp_path / "other") as other:
        export.import_lines(other.web.workspace(WORKSPACE), file, print)
        assert set(list_active(other)) == texts
        assert other.list_memories(WORKSPACE, archived=True).keys() >= {
            entry["id"] for entry in exported if entry.get("content") == archived
        }


def test_kept_directory_is_copied_and_restored(site, name):
    texts = CONTENTS[name][0]
    # The one that is in the archive, or that was taken before a migration, and a new one.
    taken = snapshots.take_snapshot(site.settings, WORKSPACE).name
    names = [snapshot.name for snapshot in snapshots.list_snapshots(site.settings, WORKSPACE)]
    assert len(names) > 1
    site.call("POST", "/v1/memories", {"content": "Written after the snapshot"})
    for snapshot in {taken, *names}:
        with site.stopped():
            restored = snapshots.restore_snapshot(site.settings, WORKSPACE, snapshot, print)
        assert restored.memories > len(texts)
        assert set(list_active(site)) == texts
    repair(site)
    assert site.recall(WORKSPACE, "style guide")


def describe_new(root):
    keep_directory.make_directory(root)
    return describe_formats(root)


@pytest.fixture
def kept(tmp_path):
    return describe_formats(unpack_directory(NEWEST, tmp_path / "kept"))


def test_newest_kept_directory_has_the_present_formats(kept, tmp_path):
    now = describe_new(tmp_path / "now")
    assert now == kept, "a format changed: run `python -m tests.support.keep_directory NAME` and add NAME to NAMES"


def test_change_of_a_format_is_noticed(kept, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.index.segment.FORMAT", segment.FORMAT + 1)
    monkeypatch.setattr("pipeline.index.codes.MAGIC", b"passage codes 9\n")
    with next_version():
        now = describe_new(tmp_path / "now")
    changed = {part for part, form in now.items() if form != kept[part]}
    assert changed == {"events.sqlite", "snapshot", "lexical segment", "codes"}
