"""A purge erases the turns that contain a text of the memory, in its own transaction, and no other turn."""

import pytest

from pipeline.kernel.records import Draft, Revision
from pipeline.kernel.store import turns
from pipeline.write.accept import accept
from pipeline.write.revise import edit, purge
from tests.fakes.in_process import scratch_database

AT = "2026-01-01T00:00:00.000Z"
TEXT = "The flumadiddle listens on port 8123"
OTHERS = ["Which port does it listen on?", "The flumadiddle is blue", "The flumadiddle listens on port 8124"]


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def say(database, *texts):
    with database.write() as db:
        return turns.add(db, [turns.Message("s1", "user", text, AT) for text in texts])


def list_said(database):
    with database.read() as db:
        return [turn.content for turn in turns.by_seqs(db, turns.all_seqs(db))]


@pytest.mark.parametrize(
    "quotation",
    [TEXT, TEXT.upper(), f"Remember: {TEXT}. Now fix the tests.", "the  flumadiddle\nlistens on\tport 8123"],
)
def test_turn_that_contains_the_text_is_erased_and_others_stay(database, quotation):
    stored = accept(database, Draft(TEXT))
    say(database, *OTHERS, quotation)
    purge(database, stored.id)
    assert sorted(list_said(database)) == sorted(OTHERS)


def test_turn_that_contains_an_earlier_text_is_erased(database):
    stored = accept(database, Draft(TEXT))
    edit(database, stored.id, Revision(content="The flumadiddle has no port"))
    say(database, *OTHERS, f"I said: {TEXT}")
    purge(database, stored.id)
    assert sorted(list_said(database)) == sorted(OTHERS)


def test_turn_that_a_memory_was_made_of_is_erased(database):
    made_of, other = say(database, "It uses the port after 8122", "It uses the port before 8122")
    stored = accept(database, Draft(TEXT, metadata={"turn": made_of}))
    purge(database, stored.id)
    with database.read() as db:
        assert turns.all_seqs(db) == [other]
