"""What a reader reads comes to the server in bounded pieces, whoever breaks off in between."""

import contextlib
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pipeline.features.ingest.fields import Item, Skipped, Unchanged
from pipeline.kernel.errors import FieldError, InvalidField, NotFound, StoreBusy
from pipeline.kernel.records import Anchor, Draft, EdgeDraft, EdgeKind, Kind, Scope, ScopeKind, Sensitivity, Source
from pipeline.kernel.records.extraction import Disposition, Extraction
from tests.fakes.command_line import serve_app
from tests.fakes.in_process import fast_settings, open_web
from web.features.ingest.uploads import (
    MAX_BYTES,
    MAX_ITEMS,
    MAX_MEMORIES,
    PATIENCE,
    Intake,
    draft_body,
    item_key,
    problem_of_key,
    split_item,
)
from web.http.client import Client

SOURCE = "project:shop-0d1a25a8"


class Broken(Exception):
    """What stops a reading in these tests."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    container = open_web(fast_settings(tmp_path_factory.mktemp("intake") / "home"))
    with (
        serve_app(container) as port,
        contextlib.closing(Client(f"http://127.0.0.1:{port}", container.token)) as client,
    ):
        client.numbers, client.made = count(), contextlib.ExitStack()
        with client.made:
            yield client
    container.close()


@pytest.fixture
def client(server):
    """A client of a workspace of its own, which notes what it puts."""
    return fresh(server)


def fresh(server):
    client = Client(server.url, server._token, f"w{next(server.numbers)}")
    server.made.callback(client.close)
    client.puts = []
    put = client.put_items

    def noting(source, items):
        client.puts.append([(item["key"], len(item["memories"])) for item in items])
        return put(source, items)

    client.put_items = noting
    return client


def item(key, *contents, digest=None):
    drafts = tuple(Draft(content, source=Source.IMPORT) for content in contents)
    return Item(key, digest or str(abs(hash(contents))), drafts)


def reader(*readings, stops_after=None):
    """Return a reader that knows what is unchanged, and may break off."""

    def read(known):
        for number, reading in enumerate(readings):
            if stops_after is not None and number >= stops_after:
                raise Broken
            if isinstance(reading, Item) and known.get(reading.key) == reading.digest:
                yield Unchanged(reading.key)
            else:
                yield reading

    return read


def list_stored(client):
    return {key: one["memories"] for key, one in Intake(client, SOURCE).list_stored().items()}


def contents(client):
    try:
        return sorted(memory["content"] for memory in client.items("/v1/memories", 10_000))
    except NotFound:
        return []


def test_items_are_taken_once(client):
    intake = Intake(client, SOURCE)
    read = reader(item("a", "Opens", "Closes"), item("b", "Sells"), Skipped("c.png", "binary"), item("empty"))
    first = intake.take(read)
    assert first.items == {"created": 3}
    assert first.memories == {"created": 3, "archived": 0, "restored": 0}
    assert {reason: (one.count, one.first) for reason, one in first.skipped.items()} == {"binary": (1, ["c.png"])}
    second = intake.take(read)
    assert (second.items, second.memories) == ({"unchanged": 3}, {})
    assert len(client.puts) == 1
    third = intake.take(reader(item("a", "Opens"), item("b", "Sells")))
    assert third.items == {"replaced": 1, "unchanged": 1}
    assert contents(client) == ["Opens", "Sells"]
    assert list_stored(client) == {"a": 1, "b": 1, "empty": 0}


def test_requests_are_bounded(client):
    items = [item(f"{n}", *(f"Rule {n} {m}" for m in range(7))) for n in range(450)]
    Intake(client, SOURCE).take(reader(*items))
    assert sum(len(put) for put in client.puts) == 450
    assert all(len(put) <= MAX_ITEMS and sum(n for _, n in put) <= MAX_MEMORIES for put in client.puts)
    assert len(client.puts) < 20


def test_oversized_item_is_sent_in_parts_and_can_be_forgotten(client):
    intake = Intake(client, SOURCE)
    large = item("chat", *(f"Message {n}" for n in range(620)), digest="1")
    assert intake.take(reader(item("a", "Opens"), large)).items == {"created": 2}
    assert [item_key(key) for put in client.puts for key, _ in put] == ["a", "chat", "chat", "chat"]
    assert client.puts[-1] == [("chat", 250)]
    assert len(contents(client)) == 621
    assert intake.take(reader(item("a", "Opens"), large)).items == {"unchanged": 2}
    smaller = item("chat", *(f"Message {n}" for n in range(300)), digest="2")
    assert intake.take(reader(item("a", "Opens"), smaller)).items == {"unchanged": 1, "replaced": 1}
    assert len(contents(client)) == 301
    assert sorted(list_stored(client).values()) == [1, 50, 250]
    assert intake.forget().items == {"forgotten": 2}
    assert contents(client) == []


def test_a_large_item_that_was_broken_off_is_read_again(client):
    large = item("chat", *(f"Message {n}" for n in range(620)))
    puts = count()
    put = client.put_items

    def failing(source, items):
        if next(puts) == 2:
            raise Broken
        return put(source, items)

    client.put_items = failing
    with pytest.raises(Broken):
        Intake(client, SOURCE).take(reader(large))
    assert "chat" not in list_stored(client)
    client.put_items = put
    assert Intake(client, SOURCE).take(reader(large)).items == {"created": 1}
    assert len(contents(client)) == 620


def test_parts_are_bounded_by_bytes_too():
    large = Item("a", "1", tuple(Draft("x" * 9000, metadata={"n": n, "é": "é" * 4000}) for n in range(600)))
    entries = split_item(large)
    assert len(entries) > 1
    assert all(entry.size <= MAX_BYTES for entry in entries)
    assert sum(len(entry.memories) for entry in entries) == 600
    assert entries[-1].key == "a"


@pytest.mark.parametrize("sweeps", [True, False])
def test_vanished_items_are_forgotten_only_in_a_complete_read(client, sweeps):
    intake = Intake(client, SOURCE, sweeps=sweeps)
    intake.take(reader(item("a", "Opens"), item("b", "Closes")))
    tally = intake.take(reader(item("a", "Opens")))
    assert tally.items == ({"unchanged": 1, "forgotten": 1} if sweeps else {"unchanged": 1})
    assert contents(client) == (["Opens"] if sweeps else ["Closes", "Opens"])


def test_unreadable_items_keep_their_memories(client):
    intake = Intake(client, SOURCE, sweeps=True)
    everything = [item(key, f"In {key}") for key in ("a.py", "locked/b.py", "locked/deep/c.py", "lockedd.py", "d.bin")]
    intake.take(reader(*everything))
    again = [Skipped("a.py", "cannot be read: Permission denied"), Skipped("locked/", "cannot be read")]
    tally = intake.take(reader(*again, Skipped("d.bin", "binary")))
    assert tally.items == {"forgotten": 2}
    assert contents(client) == ["In a.py", "In locked/b.py", "In locked/deep/c.py"]


def test_nothing_is_forgotten_where_the_root_could_not_be_read(client):
    intake = Intake(client, SOURCE, sweeps=True)
    intake.take(reader(item("a.py", "Opens"), item("deep/b.py", "Closes")))
    assert intake.take(reader(Skipped(".", "cannot be read"))).items == {}
    assert contents(client) == ["Closes", "Opens"]


def test_nothing_is_forgotten_by_a_reading_that_broke_off(client):
    intake = Intake(client, SOURCE, sweeps=True)
    intake.take(reader(item("a", "Opens"), item("b", "Closes")))
    with pytest.raises(Broken):
        intake.take(reader(item("a", "Opens"), item("b", "Closes"), stops_after=1))
    assert contents(client) == ["Closes", "Opens"]


def test_a_dry_run_counts_and_writes_nothing(client):
    intake = Intake(client, SOURCE, sweeps=True)
    intake.take(reader(item("a", "Opens"), item("b", "Closes")))
    before = list_stored(client)
    tally = Intake(client, SOURCE, sweeps=True, dry=True).take(reader(item("a", "Other"), item("c", "New", "Newer")))
    assert tally.items == {"replaced": 1, "created": 1, "forgotten": 1}
    assert tally.memories == {"given": 3}
    assert Intake(client, SOURCE, dry=True).forget().items == {"forgotten": 2}
    assert (list_stored(client), contents(client)) == (before, ["Closes", "Opens"])


def test_a_memory_that_cannot_be_taken_stops_no_other(client):
    bad = Item("bad", "1", (Draft("Fine"), Draft("x" * 10_001), Draft("\u200b"), Draft("Also fine", tags=("!",))))
    tally = Intake(client, SOURCE).take(reader(item("a", "Opens"), bad, item("b", "Closes")))
    assert contents(client) == ["Closes", "Fine", "Opens"]
    assert tally.items == {"created": 3}
    assert tally.memories["rejected"] == 3
    assert len(tally.rejected) == 3
    assert any("content" in reason and "10000 characters" in reason for reason in tally.rejected)


def test_an_item_that_cannot_be_taken_stops_no_other(client):
    tally = Intake(client, SOURCE).take(reader(item("a", "Opens", digest="two words"), item("b", "Closes")))
    assert contents(client) == ["Closes"]
    assert [one.first for one in tally.skipped.values()] == [["a"]]


@pytest.mark.parametrize(
    "errors", [(), (FieldError("items", "too many"),), (FieldError("items.7.key", "no"),), (FieldError("body", "no"),)]
)
def test_rejection_that_names_no_item_is_raised(client, errors):
    def refuse(source, items):
        raise InvalidField(*errors)

    client.put_items = refuse
    with pytest.raises(InvalidField):
        Intake(client, SOURCE).take(reader(item("a", "Opens")))


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "it has no name"),
        ("k" * 1025, "its name is too long"),
        ("bad\udcff.py", "its name is not valid text"),
        ("chat\x1f2", "its name is not valid text"),
        ("keys/ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8.txt", "its name contains a secret"),
    ],
)
def test_a_key_that_cannot_be_kept_is_left_out(client, key, reason):
    assert problem_of_key(key) == reason
    tally = Intake(client, SOURCE).take(reader(item(key, "Opens"), item("ünï/cödé 1.py", "Closes")))
    assert set(tally.skipped) == {reason}
    assert set(list_stored(client)) == {"ünï/cödé 1.py"}


def test_an_item_that_is_read_twice_counts_once(client):
    tally = Intake(client, SOURCE).take(reader(item("a", "Opens"), item("a", "Closes")))
    assert set(tally.skipped) == {"it was read twice"}
    assert contents(client) == ["Opens"]


def test_a_busy_store_is_asked_again(client):
    put, refusals, waited = client.put_items, iter([True, True, False]), []

    def busy(source, items):
        if next(refusals):
            raise StoreBusy("busy")
        return put(source, items)

    client.put_items = busy
    Intake(client, SOURCE, wait=waited.append).take(reader(item("a", "Opens")))
    assert (contents(client), waited) == (["Opens"], list(PATIENCE[:2]))


def test_persistently_busy_store_is_reported_after_retries(client):
    waited = []

    def busy(source, items):
        raise StoreBusy("busy")

    client.put_items = busy
    with pytest.raises(StoreBusy):
        Intake(client, SOURCE, wait=waited.append).take(reader(item("a", "Opens")))
    assert waited == list(PATIENCE)


def test_every_field_of_a_draft_is_imported(client):
    earlier = client.remember({"content": "Opens at nine"})["id"]
    draft = Draft(
        "def open_shop()",
        kind=Kind.CODE,
        importance=0.7,
        scope=Scope(ScopeKind.AGENT, "reviewer"),
        tags=("py",),
        metadata={"n": 1},
        session_id="s1",
        source=Source.IMPORT,
        occurred_at="2026-01-02T03:04:05.000Z",
        details={"symbol": "open_shop"},
        anchor=Anchor("src/shop.py", 3, None, "0" * 64),
        branch="main",
        expires_at="2999-01-02T03:04:05.000Z",
        sensitivity=Sensitivity.PRIVATE,
        edges=(EdgeDraft(EdgeKind.SUPPORTS, earlier),),
        extraction=Extraction(value="nine", evidence="opens at nine", confidence=0.9, disposition=Disposition.STORE),
    )
    # Imports have keys of their own; a body has the fields of an extraction.
    fields = Draft.__dataclass_fields__.keys() - {"source", "id", "extraction"}
    assert set(draft_body(draft)) == fields | Extraction.__dataclass_fields__.keys()
    Intake(client, SOURCE).take(reader(Item("a", "1", (draft,))))
    [listed] = client.items("/v1/memories", 10, scope="agent:reviewer")
    memory = client.memory(listed["id"])
    assert memory["anchor"]["lines"] == [3, 3]
    assert (memory["branch"], memory["session_id"], memory["importance"]) == ("main", "s1", 0.7)
    assert [edge["id"] for edge in memory["edges"]] == [earlier]
    assert memory["metadata"]["extraction"]["evidence"] == "opens at nine"


texts = st.lists(st.sampled_from(["Opens", "Closes", "Sells", "Sweeps"]), max_size=3, unique=True)
states = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), texts, max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=states, after=states, stop=st.integers(0, 4), batch=st.integers(1, 3))
def test_interrupted_import_ends_with_the_same_result(server, monkeypatch, before, after, stop, batch):
    monkeypatch.setattr("web.features.ingest.uploads.MAX_ITEMS", batch)

    def readings(state):
        return [item(key, *found, digest="-".join(found) or "none") for key, found in state.items()]

    undisturbed, disturbed = fresh(server), fresh(server)
    for client in (undisturbed, disturbed):
        Intake(client, SOURCE, sweeps=True).take(reader(*readings(before)))
    Intake(undisturbed, SOURCE, sweeps=True).take(reader(*readings(after)))
    with contextlib.suppress(Broken):
        Intake(disturbed, SOURCE, sweeps=True).take(reader(*readings(after), stops_after=stop))
    Intake(disturbed, SOURCE, sweeps=True).take(reader(*readings(after)))
    assert contents(disturbed) == contents(undisturbed)
    assert list_stored(disturbed) == list_stored(undisturbed)
