"""What a session subscribed to, and which changes concern it."""

import pytest
from hypothesis import given, strategies as st

from pipeline.features.changes.events import Cursor
from pipeline.kernel.errors import InvalidField, NotFound
from pipeline.kernel.records.people import HOME_OWNER, Caller
from web.mcp.offered_tools import Switches
from web.mcp.route import HttpSessions, Subscriptions

BRIEF = "reverie://brief"
IDS = [f"01ARZ3NDEKTSV4RRFFQ69G5F{end}" for end in ("AA", "AB", "BA", "BB")]
ON = Switches()


def uri_of(memory_id):
    return f"reverie://memory/{memory_id}"


commands = st.lists(st.tuples(st.sampled_from(["add", "remove"]), st.sampled_from([BRIEF, *map(uri_of, IDS)])))


@given(commands, st.lists(st.sampled_from(IDS)))
def test_a_change_concerns_the_brief_and_the_resource_of_its_memory(given_commands, changed):
    subscriptions, expected = Subscriptions(), set()
    for command, uri in given_commands:
        getattr(subscriptions, command)(uri)
        expected = expected | {uri} if command == "add" else expected - {uri}
    assert set(subscriptions.uris) == expected
    concerned = {uri_of(memory_id) for memory_id in changed} | ({BRIEF} if changed else set())
    found = subscriptions.find_changed(changed)
    assert set(found) == expected & concerned
    assert len(found) == len(set(found))
    assert set(subscriptions.find_changed([None])) == expected
    assert all(subscriptions.names(one) == (uri_of(one) in expected) for one in IDS)


@pytest.mark.parametrize(
    "uri", [uri_of(IDS[0][-8:]), uri_of(IDS[0].lower()), "reverie://memory/%5B" + IDS[0][-8:] + "%5D"]
)
def test_a_memory_may_be_named_as_in_other_tools(uri):
    subscriptions = Subscriptions()
    subscriptions.add(uri)
    assert subscriptions.find_changed(IDS) == [uri]
    assert subscriptions.find_changed(IDS[1:]) == []


@pytest.mark.parametrize(
    "uri", ["", "reverie://", "reverie://memory/", "reverie://memory/G5FAA", "reverie://memory/a/b%20c.d", "file:///x"]
)
def test_unknown_resource_cannot_be_subscribed(uri):
    subscriptions = Subscriptions()
    with pytest.raises(NotFound):
        subscriptions.add(uri)
    assert subscriptions.uris == []
    subscriptions.remove(uri)


def test_the_number_of_subscriptions_is_limited():
    subscriptions = Subscriptions(most=2)
    for uri in (BRIEF, uri_of(IDS[0]), BRIEF):
        subscriptions.add(uri)
    with pytest.raises(InvalidField):
        subscriptions.add(uri_of(IDS[1]))
    subscriptions.remove(BRIEF)
    subscriptions.add(uri_of(IDS[1]))


def test_a_session_belongs_to_its_caller_and_workspace():
    sessions = HttpSessions(most=2)
    session_id = sessions.open(HOME_OWNER, "shop", ON)
    other = Caller(token_id="other")
    assert sessions.find(session_id, HOME_OWNER, "shop") is not None
    assert sessions.find(session_id, HOME_OWNER, "home") is None
    assert sessions.find(session_id, other, "shop") is None
    assert sessions.find("", HOME_OWNER, "shop") is None


def test_the_least_recently_used_session_is_dropped():
    sessions = HttpSessions(most=2)
    first, second = (sessions.open(HOME_OWNER, "shop", ON) for _ in range(2))
    sessions.find(first, HOME_OWNER, "shop")
    sessions.open(HOME_OWNER, "shop", ON)
    assert sessions.find(first, HOME_OWNER, "shop") is not None
    assert sessions.find(second, HOME_OWNER, "shop") is None


def test_session_starts_at_its_first_subscription_with_a_single_stream():
    sessions = HttpSessions()
    session = sessions.find(sessions.open(HOME_OWNER, "shop", ON), HOME_OWNER, "shop")
    assert session.cursor is None
    session.subscribe(BRIEF, lambda: Cursor(3, 1, 0))
    session.subscribe(uri_of(IDS[0]), lambda: Cursor(9, 2, 0))
    assert session.cursor == Cursor(3, 1, 0)
    with pytest.raises(NotFound):
        session.subscribe("reverie://nothing", lambda: Cursor(9, 2, 0))
    older, newer = session.open_stream(), session.open_stream()
    assert (older(), newer()) == (False, True)


def test_changed_switches_change_the_lists_once():
    sessions = HttpSessions()
    session = sessions.find(sessions.open(HOME_OWNER, "shop", ON), HOME_OWNER, "shop")
    assert session.compare(ON) == (False, False)
    assert session.compare(Switches(may_write=False)) == (True, False)
    assert session.compare(Switches(is_enabled=False)) == (True, True)
    assert session.compare(Switches(is_enabled=False)) == (False, False)
