"""Code that a memory is about, on machines whose checkouts differ."""

import contextlib
from dataclasses import replace

import pytest

from pipeline.kernel.anchors import find_checkout, is_missing, locate, path_in_checkout
from pipeline.kernel.records import Anchor
from pipeline.kernel.store import meta, replicated_records
from pipeline.kernel.store.replicated_records import MEMORY, Key
from tests.fakes.homes import Home, exchange_until_still, pair
from tests.fakes.recall_workspace import RecallWorkspace


@pytest.fixture
def homes(tmp_path):
    made = [Home(tmp_path / name) for name in ("one", "two")]
    pair(*made, url=f"dir:{tmp_path}/shared")
    yield made
    for home in made:
        home.close()


@pytest.fixture
def checkouts(tmp_path):
    """Two checkouts of one project; the second lacks door.py."""
    made = [tmp_path / name / "project" for name in ("here", "there")]
    for root in made:
        (root / ".git").mkdir(parents=True)
        (root / "src").mkdir()
        (root / "src" / "gate.py").write_text("def gate(): pass\n")
    (made[0] / "src" / "door.py").write_text("def door(): pass\n")
    return made


def use(home, checkout):
    """Have a home know where its checkout is, as a session there tells it."""
    with home.database().write() as db:
        meta.put(db, meta.CHECKOUT, str(checkout))


def recall(home, text):
    workspace = RecallWorkspace(home.database())
    with contextlib.closing(workspace):
        return workspace.ask(text).hits


def travelling_anchor(home, memory):
    with home.database().read() as db:
        key = Key(MEMORY, memory)
        return replicated_records.read(db, [key])[key]["anchor"]


def test_synced_anchor_contains_only_the_path_within_the_checkout(homes, checkouts, tmp_path):
    one, two = homes
    memory = one.say("The door opens inwards", anchor=Anchor(str(checkouts[0] / "src" / "door.py"), 1, 1))
    loose = tmp_path / "loose.py"
    loose.write_text("x = 1\n")
    other = one.say("x is one", anchor=Anchor(str(loose)))
    exchange_until_still(one, two)
    assert two.get(memory).anchor == replace(one.get(memory).anchor, path="./src/door.py", checkout=None)
    assert two.get(other).anchor.path == "loose.py"
    assert travelling_anchor(one, memory) == travelling_anchor(two, memory)
    assert str(tmp_path) not in "\n".join(str(item) for item in one.sync.list_changes("default", 0, 100))


def test_code_that_this_checkout_has_is_checked_there(homes, checkouts):
    one, two = homes
    memory = one.say("The gate stays open", anchor=Anchor(str(checkouts[0] / "src" / "gate.py")))
    exchange_until_still(one, two)
    use(two, checkouts[1])
    [hit] = recall(two, "does the gate stay open")
    assert (hit.memory.id, hit.annotations.stale, hit.annotations.missing) == (memory, False, False)
    (checkouts[1] / "src" / "gate.py").write_text("def gate(): return 1\n")
    [hit] = recall(two, "does the gate stay open")
    assert (hit.annotations.stale, hit.annotations.missing) == (True, False)


def test_code_that_this_checkout_lacks_is_demoted_and_not_hidden(homes, checkouts):
    one, two = homes
    anchor = Anchor(str(checkouts[0] / "src" / "door.py"))
    about_door = one.say("The brass lamp hangs in the hall beside the door", anchor=anchor)
    plain = one.say("The brass lamp hangs in the hall beside the stair")
    exchange_until_still(one, two)
    use(two, checkouts[1])
    assert [hit.memory.id for hit in recall(one, "brass lamp hangs in the hall beside the door")] == [about_door, plain]
    hits = recall(two, "brass lamp hangs in the hall beside the door")
    assert [hit.memory.id for hit in hits] == [plain, about_door]
    assert hits[1].annotations.missing
    (checkouts[1] / "src" / "door.py").write_text("def door(): pass\n")
    assert [hit.memory.id for hit in recall(two, "brass lamp hangs in the hall beside the door")] == [about_door, plain]


def test_without_a_checkout_a_missing_file_is_not_reported(homes, checkouts):
    one, two = homes
    one.say("The door opens inwards", anchor=Anchor(str(checkouts[0] / "src" / "door.py")))
    exchange_until_still(one, two)
    [hit] = recall(two, "the door opens inwards")
    assert (hit.annotations.stale, hit.annotations.missing) == (None, False)


def test_own_anchor_keeps_its_folder_after_a_remote_edit(homes, checkouts):
    one, two = homes
    path = str(checkouts[0] / "src" / "door.py")
    memory = one.say("The door opens inwards", anchor=Anchor(path))
    exchange_until_still(one, two)
    two.edit(memory, tags=("door",))
    exchange_until_still(one, two)
    assert one.get(memory).tags == ("door",)
    assert one.get(memory).anchor.path == path


@pytest.mark.parametrize("path", ["./../outside.py", "./../../etc/passwd", "./a/../../b"])
def test_no_path_leads_out_of_the_checkout(tmp_path, path):
    anchor = Anchor(path, content_hash="0")
    assert locate(anchor, str(tmp_path)) == anchor
    assert not is_missing(locate(anchor, str(tmp_path)))


def test_a_checkout_is_found_from_any_folder_in_it(checkouts):
    root = str(checkouts[0])
    assert find_checkout(str(checkouts[0] / "src")) == find_checkout(root) == root
    assert find_checkout("src") is None
    assert path_in_checkout(f"{root}/src/door.py", root) == "./src/door.py"
    assert path_in_checkout("/elsewhere/door.py", root) == "door.py"
