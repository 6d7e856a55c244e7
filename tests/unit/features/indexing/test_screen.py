"""The screen stage: which memories are judged, and what becomes of a flag."""

import pytest

from pipeline.features.indexing.screen_stage import ScreenStage, list_sentences
from pipeline.kernel.records import Draft, Kind, Revision, Source, Stage
from pipeline.kernel.store import memories, work
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database

OWNER = "worker"


class WordClassifier:
    """Takes every text with the word "hostile" for an attack."""

    def find_attacks(self, texts):
        return ["hostile" in text for text in texts]


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def store(database, content, source=Source.AGENT, **fields):
    return accept(database, Draft(content, source=source, **fields)).id


def screen(database):
    with database.write() as db:
        seqs = [memory.seq for memory in memories.select(db, "1 = 1 ORDER BY seq", ())]
        work.add(db, seqs, [Stage.SCREEN], 0)
        items = work.claim(db, Stage.SCREEN, OWNER, limit=100, lease_s=60, now=1)
    ScreenStage(database, WordClassifier).run(items, OWNER)


def get(database, memory_id):
    with database.read() as db:
        return memories.get(db, memory_id)


def test_a_flagged_memory_keeps_its_text_and_its_time(database):
    hostile, harmless = store(database, "a hostile note"), store(database, "a harmless note")
    before = get(database, hostile)
    screen(database)
    after = get(database, hostile)
    assert (after.instructs, after.content, after.updated_at) == (True, before.content, before.updated_at)
    assert get(database, harmless).instructs is False
    with database.read() as db:
        assert work.find_next_due(db, Stage.SCREEN) is None


@pytest.mark.parametrize("source", list(Source))
def test_a_persons_words_and_imports_are_not_judged(database, source):
    memory_id = store(database, "We keep this hostile note about the nightly build server.", source)
    screen(database)
    assert get(database, memory_id).instructs is (source in {Source.AGENT, Source.AMBIENT})


def test_the_fields_of_a_memory_are_judged_too(database):
    memory_id = store(database, "a plain decision", kind=Kind.DECISION, details={"reason": "it is hostile"})
    screen(database)
    assert get(database, memory_id).instructs is True


def test_an_edit_keeps_the_flag_until_the_text_changes(database):
    memory_id = store(database, "a hostile note")
    screen(database)
    assert revise.edit(database, memory_id, Revision(metadata={"a": "b"})).instructs is True
    assert revise.edit(database, memory_id, Revision(content="something else")).instructs is False


def test_sentences_are_read_across_wrapped_lines_and_apart_in_lists():
    assert list_sentences("The build uses\nNode here. It is cached.\n\n- first item here\n- second item here\nok") == [
        "The build uses Node here.",
        "It is cached.",
        "- first item here",
        "- second item here ok",
    ]
