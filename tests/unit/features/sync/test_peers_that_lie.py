"""What another machine sends is believed only as far as it is signed, whole, and its own to say."""

import contextlib
import json
import shutil
import zlib
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from pipeline.features.sync import keys
from pipeline.features.sync.circle import Circle
from pipeline.features.sync.segment import Segment, SegmentName, parse_name, read_segment, write_segment
from pipeline.features.sync.signed import to_item
from pipeline.kernel.errors import PeerRefused
from pipeline.kernel.records import Revision
from pipeline.kernel.store import clock, oplog
from pipeline.kernel.store.oplog import Operation
from pipeline.write import revise
from tests.fakes.homes import SHARED, Home, exchange_until_still, pair

_numbers = count(1)


@contextlib.contextmanager
def open_pair(folder):
    """Open two homes that share a remote and know the same."""
    with contextlib.ExitStack() as opened:
        made = [opened.enter_context(contextlib.closing(Home(folder / name))) for name in ("one", "two")]
        pair(*made, url=f"dir:{folder}/shared")
        made[0].say("sound")
        exchange_until_still(*made)
        yield made


@pytest.fixture
def homes(tmp_path):
    with open_pair(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def acquainted(tmp_path_factory):
    """Such homes for tests that only hand operations from one to the other, each its own."""
    with open_pair(tmp_path_factory.mktemp("acquainted")) as made:
        yield made


@pytest.fixture
def shared(tmp_path):
    return tmp_path / "shared"


def own_item(home, **changes):
    """Return an operation of a home as it would send it; what is changed is changed after it was signed."""
    memory = home.say(f"told as number {next(_numbers)}")
    circle = Circle(home.sync.peers)
    items = home.sync.list_changes("default", 0, 1000)
    item = next(one for one in reversed(items) if one["memory_id"] == memory)
    assert circle.devices[item["hlc"][22:]].revoked_at is None
    return {**item, **changes}


def take(home, *items, workspace="default"):
    return home.sync.take_in(workspace, list(items))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fields": {"content": "another text"}}, "not what was signed"),
        ({"hlc": f"{1:014d}-{0:06d}-{'ab' * 8}"}, "not what was signed"),
        ({"signature": "AAAA"}, "no valid signature"),
        ({"kind": "nonsense"}, "about nothing"),
        ({"memory_id": "../../etc"}, "about nothing"),
        ({"fields": {"content": 3}}, "content cannot be taken"),
        ({"fields": {"sudo": True}}, "sudo cannot be taken"),
        ({"fields": "x"}, "fields cannot be read"),
        ({"after": ["x"]}, "fields cannot be read"),
        ({"hlc": "now"}, "hybrid logical clock"),
        ({"signature": None}, "text is missing"),
        ({"fields": {"scope_kind": "session"}}, "belongs to one session"),
    ],
)
def test_forged_operation_is_quarantined_with_a_reason(acquainted, changes, reason):
    one, two = acquainted
    merged = take(two, own_item(one, **changes), own_item(one))
    assert merged.applied == 1
    [(place, why)] = merged.put_aside
    assert place == 0
    assert reason in why


@pytest.mark.parametrize("item", [None, 3, "x", [], {}, {"id": 1}, {"fields": {}, "after": []}])
def test_invalid_operation_is_quarantined(acquainted, item):
    assert [place for place, _ in take(acquainted[1], item).put_aside] == [0]


def test_an_operation_counts_in_its_own_workspace_alone(acquainted):
    one, two = acquainted
    item = own_item(one)
    [(_, reason)] = take(two, item, workspace="elsewhere").put_aside
    assert "no valid signature" in reason


def test_a_device_cannot_speak_in_anothers_name(acquainted):
    one, two = acquainted
    circle = Circle(one.sync.peers)
    victim = next(node for node in circle.devices if node != circle.identity.node)
    with one.database().read() as db:
        operation = oplog.after(db, 0, 1, ("workspace",))[0][1]
    forged = Operation(clock.with_node(operation.hlc, victim), operation.key, {"content": "forged"})
    signature = circle.signers[circle.identity.node].sign(f"reverie operation 1\ndefault\n{forged.id}".encode())
    [(_, reason)] = take(two, to_item("default", replace(forged, signature=signature), circle)).put_aside
    assert "no valid signature" in reason
    assert circle.devices[victim].name in reason


def test_operation_of_an_unpaired_device_is_quarantined(acquainted, tmp_path):
    with contextlib.closing(Home(tmp_path / "stranger")) as stranger:
        [(_, reason)] = take(acquainted[1], own_item(stranger)).put_aside
    assert "not paired" in reason


def test_a_replayed_operation_changes_nothing(acquainted):
    one, two = acquainted
    item = own_item(one)
    assert take(two, item).applied == 1
    merged = take(two, item, item)
    assert (merged.applied, merged.known, merged.put_aside) == (0, 2, [])


# Segments: files that somebody else could have written, cut off, renamed or brought back


def segments(shared: Path, home: Home) -> list[Path]:
    node = Circle(home.sync.peers).identity.node
    return sorted((shared / "segments" / node).iterdir())


def read_again(home):
    home.sync.peers.forget_progress(SHARED)
    return home.exchange()


def cut(file):
    file.write_bytes(file.read_bytes()[:-20])


def empty(file):
    file.write_bytes(b"")


def garble(file):
    file.write_bytes(b"reverie segment 1\nnot a signature\n{}\n")


def future(file):
    file.write_bytes(b"reverie segment 9\nx\n{}\n")


def rename(file):
    file.rename(file.with_name("000000000005-000000000005.segment"))


def steal(file):
    other = file.parent.with_name("ab" * 8)
    other.mkdir()
    shutil.move(file, other / file.name)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (cut, "cannot be opened"),
        (empty, "cut off"),
        (garble, "header"),
        (future, "later version"),
        (rename, "but its header says"),
        (steal, "but its header says"),
    ],
)
def test_a_damaged_or_foreign_sync_file_is_reported_and_blocks_nothing(homes, shared, spoil, reason):
    one, two = homes
    revise.edit(one.database(), one.say("second"), Revision(pinned=True))
    one.exchange()
    first, *_ = segments(shared, one)
    spoil(first)
    done = read_again(two)
    assert any(reason in refused for refused in done.refused), done.refused
    assert "second" in two.texts()
    assert two.sync.status()[0].error


def test_an_older_segment_under_a_newer_name_is_seen(homes, shared):
    one, two = homes
    one.say("second")
    one.exchange()
    first, second = segments(shared, one)
    shutil.copy(first, second)
    assert any("but its header says" in refused for refused in read_again(two).refused)


def test_a_writer_that_signs_as_another_is_refused_and_named(homes):
    one, two = homes
    mine, theirs = Circle(one.sync.peers), Circle(two.sync.peers)
    name = SegmentName(mine.identity.node, 1, 1)
    # Signed with the wrong key under the right name.
    forger = Circle(one.sync.peers)
    vars(forger)["signers"] = {mine.identity.node: keys.Signer(keys.make_seed())}
    content = write_segment(Segment(name, [{"workspace": "default"}], []), forger, sealed=True)
    with pytest.raises(Exception, match="no valid signature"):
        read_segment(content, name, theirs)


def test_a_body_that_was_exchanged_is_seen(homes):
    circle = Circle(homes[0].sync.peers)
    name = SegmentName(circle.identity.node, 1, 1)
    content = write_segment(Segment(name, [{"workspace": "default"}], []), circle, sealed=False)
    head, _, _ = content.rpartition(b"\n")
    other = zlib.compress(json.dumps({"workspace": "other"}).encode())
    with pytest.raises(Exception, match="cut off or changed"):
        read_segment(
            content[: content.index(b"\n{") + 1] + head.split(b"\n", 2)[2].split(b"\n")[0] + b"\n" + other, name, circle
        )


@pytest.mark.parametrize(
    "path",
    ["segments/x/1-2.segment", "../x", "segments/" + "ab" * 8 + "/000000000002-000000000001.segment", "devices/a"],
)
def test_any_other_file_is_left_alone(path):
    assert parse_name(path) is None


def test_revoked_writer_is_rejected_but_its_earlier_memories_are_kept(homes, shared):
    one, two = homes
    said = two.say("before I was lost")
    exchange_until_still(one, two)
    lost = Circle(two.sync.peers).identity
    one.sync.revoke(lost.node)
    one.exchange()
    two.say("after")
    two.exchange()
    one.exchange()
    assert one.get(said) is not None
    assert "after" not in one.texts()


@pytest.mark.parametrize(
    "changes",
    [{"verify_key": "no key"}, {"verify_key": 7}, {"node": "ab" * 8}, {"recipient": "age1nobody"}, {"name": None}],
    ids=str,
)
def test_member_that_signs_an_invalid_device_card_is_rejected(acquainted, changes):
    one, two = acquainted
    circle = Circle(one.sync.peers)
    before = set(two.sync.peers.devices())
    told = {name: value for name, value in circle.cards()[0].items() if name != "signature"} | changes
    message = json.dumps(told, sort_keys=True, ensure_ascii=False).encode()
    card = {**told, "signature": keys.Signer(keys.circle_seed(circle.secrets[0])).sign(message)}
    with pytest.raises(PeerRefused):
        take(two, {"card": card})
    assert set(two.sync.peers.devices()) == before


def test_unsigned_device_card_is_ignored(acquainted):
    one, two = acquainted
    before = two.sync.peers.devices()
    merged = take(two, own_item(one) | {"card": {"node": 1, "signature": None}}, own_item(one, x=1) | {"card": []})
    assert merged.applied == 2
    assert two.sync.peers.devices() == before


# Two machines with one name


def test_copied_data_directory_gets_another_device_name_without_loss(homes, tmp_path):
    one, two = homes
    one.say("before the copy")
    exchange_until_still(one, two)
    shutil.copytree(one.root, tmp_path / "copy")
    with contextlib.closing(Home(tmp_path / "copy")) as copy:
        node = Circle(one.sync.peers).identity.node
        assert Circle(copy.sync.peers).identity.node == node
        one.say("written by the original")
        copy.say("written by the copy")
        one.exchange()
        exchange_until_still(copy, one, two)
        names = {Circle(home.sync.peers).identity.node for home in (one, copy)}
        assert len(names) == 2
        assert one.texts() == two.texts() == copy.texts()
        assert {"written by the original", "written by the copy"} <= set(two.texts())
