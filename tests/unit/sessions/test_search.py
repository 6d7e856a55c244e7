"""Sessions are found by what was said in them, wherever their turns are: in the tail, in the segment, or in both."""

import shutil

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index.documents import TURNS
from pipeline.index.encoder import rarity
from pipeline.index.segment import list_segments
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.records.people import qualified_name
from pipeline.kernel.store import agent_sessions, index_state, meta
from pipeline.sessions.search import QUOTE_CHARS
from pipeline.text.tokens import search_tokens
from tests.fakes.archive import AT, open_archive
from tests.fakes.properties import examples

CHATS = {
    "port": ["Which port does billing use?", "Billing listens on port 4711 behind LoadGuard."],
    "pool": ["src/db/pool.py leaks connections", "The pool closes idle connections after ten minutes now."],
    "cats": ["My cat is ill", "Take it to the vet."],
}


@pytest.fixture
def archive():
    with open_archive() as archive:
        yield archive


@pytest.fixture
def chats(archive):
    for session_id, texts in CHATS.items():
        archive.say(session_id, *texts)
    return archive


def test_a_session_is_found_by_any_of_its_turns_with_the_turn_that_says_it(chats):
    hit = chats.search("billing port")[0]
    assert (hit.session_id, hit.role, hit.at) == ("port", "user", AT)
    answer = chats.search("what is behind LoadGuard")[0]
    assert (answer.session_id, answer.role) == ("port", "assistant")
    assert answer.quote == "Billing listens on port 4711 behind LoadGuard."


def test_a_session_without_a_word_of_the_query_is_not_found(chats):
    assert chats.find("kubernetes") == []
    assert chats.find("the and of") == []
    assert "cats" not in chats.find("connections of the pool")


def test_the_same_sessions_with_the_same_scores_come_from_tail_and_segment(chats):
    before = chats.search("billing pool connections")
    assert chats.fold() == 6
    assert chats.search("billing pool connections", chats.open()) == before
    chats.say("late", "A late question about billing", "An answer")
    assert {hit.session_id for hit in chats.search("billing")} == {"port", "late"}
    both = chats.search("billing pool connections")
    assert chats.fold() == 8
    assert chats.search("billing pool connections", chats.open()) == both


def test_later_segment_keeps_earlier_words_and_omits_deleted_turns(chats):
    chats.fold()
    seqs = chats.say("secret", "The zebra password", "Noted")
    chats.fold()
    chats.forget(seqs)
    assert chats.find("zebra") == [], "the store decides before any segment is built"
    assert chats.fold() == 6
    words = next(chats.folder.rglob("words.vocabulary.json")).read_text()
    assert "zebra" not in words
    assert "billing" not in words, "words are stemmed"
    assert "bill" in words
    assert [hit.session_id for hit in chats.search("billing", chats.open())] == ["port"]
    assert len(list_segments(chats.folder)) == 1


def test_a_deletion_during_the_build_of_a_segment_asks_for_another(chats, monkeypatch):
    seqs = chats.say("secret", "The zebra password")
    chats.fold()
    index = TURNS.index

    def index_then_forget(db, load):
        segment = index(db, load)
        monkeypatch.undo()
        chats.forget(seqs)
        return segment

    chats.say("more", "Something else")
    monkeypatch.setattr(TURNS, "index", index_then_forget)
    chats.fold()
    with chats.database.read() as db:
        assert meta.get(db, meta.TURN_SEGMENT_WANTED) is not None
    chats.fold()
    assert "zebra" not in next(chats.folder.rglob("words.vocabulary.json")).read_text()


def test_a_lost_segment_is_unavailable_and_is_built_again_from_the_store(chats):
    chats.fold()
    shutil.rmtree(chats.folder)
    with pytest.raises(IndexUnavailable):
        chats.search("billing", chats.open())
    with chats.database.write() as db:
        index_state.request_turn_segment(db, anew=True)
    assert chats.fold() == 6
    assert [hit.session_id for hit in chats.search("billing", chats.open())] == ["port"]


def test_a_workspace_without_turns_has_no_segment_and_needs_none(archive):
    with archive.database.write() as db:
        index_state.request_turn_segment(db)
    assert archive.fold() == 0
    assert not list_segments(archive.folder)
    assert archive.search("anything") == []


def test_many_turns_request_a_segment_and_limit_the_readers_memory(archive, monkeypatch):
    monkeypatch.setattr(index_state, "MOST_TAIL_TURNS", 4)
    archive.say("first", "zebra one", "zebra two", "zebra three")
    with archive.database.read() as db:
        assert not TURNS.needs_segment(db, 512)
    archive.say("second", "zebra four", "giraffe five")
    assert archive.find("zebra") == ["first", "second"]
    assert archive.find("giraffe") == []
    with archive.database.read() as db:
        assert TURNS.needs_segment(db, 512)
    archive.fold()
    assert archive.find("giraffe") == ["second"]


def test_another_persons_sessions_and_incognito_sessions_are_never_found(archive):
    adas, bos = qualified_name("ada", "s1"), qualified_name("bo", "s1")
    archive.say(adas, "The zebra of Ada", "Yes")
    archive.say(bos, "The zebra of Bo", "No")
    archive.say("mine", "My zebra", "Fine")
    for fold in (False, True):
        if fold:
            archive.fold()
        assert archive.find("zebra") == ["mine"]
        assert archive.find("zebra", person_id="ada") == [adas]
        assert archive.find("zebra of Bo", person_id="ada") == [adas]
        assert archive.find("zebra", person_id="eve") == []
    with archive.database.write() as db:
        agent_sessions.begin_incognito(db, adas, AT)
    assert archive.find("zebra", person_id="ada") == []


def test_the_session_that_asks_is_left_out(chats):
    assert chats.find("billing port", except_session="port") == []


def test_the_agent_and_the_title_of_a_session_come_with_it(chats):
    with chats.database.write() as db:
        agent_sessions.name_session(db, "port", "Ports of billing", AT)
        db.execute("UPDATE agent_session SET agent = 'codex' WHERE id = 'port'")
    hit = chats.search("billing port")[0]
    assert (hit.agent, hit.title) == ("codex", "Ports of billing")
    assert chats.search("cat")[0].title is None


def test_a_quote_is_the_part_of_a_long_turn_that_is_about_the_query(archive):
    filler = "The weather was nice that day and we walked along the river for a while. " * 20
    archive.say("long", f"{filler}The deploy key rotates every ninety days. {filler}")
    quote = archive.search("deploy key rotation")[0].quote
    assert "The deploy key rotates every ninety days." in quote
    assert len(quote) <= QUOTE_CHARS


def test_of_equal_sessions_the_later_one_comes_first(archive):
    for name in ("one", "two", "three"):
        archive.say(name, "The zebra crossing", "Fine")
    assert archive.find("zebra crossing", limit=2) == ["three", "two"]


def test_a_turn_of_the_person_counts_more_than_one_of_the_agent(archive):
    archive.say("told", "What now?", "The retry budget is three attempts.")
    archive.say("asked", "The retry budget is three attempts.", "What now?")
    assert archive.find("retry budget attempts") == ["asked", "told"]


def test_a_rare_word_counts_more_than_one_that_people_often_use(archive):
    archive.say("rare", "The zebra notes", "Fine")
    archive.say("frequent", "The reminder notes", "Fine")
    assert rarity("zebra") > rarity(*search_tokens("reminder"))
    assert archive.find("reminder of the zebra") == ["rare", "frequent"]


@pytest.mark.parametrize("text", ["thanks, that looks great", "who are you?", "what is the weather in Paris today?"])
def test_an_unrelated_text_has_no_relevant_session(chats, text):
    assert chats.find(text, relevant_only=True) == []
    assert not any(hit.is_relevant for hit in chats.search(text))


def test_a_related_text_has_a_relevant_session(chats):
    text = "On which port does billing listen behind LoadGuard?"
    assert chats.find(text, relevant_only=True) == ["port"]
    assert [hit.session_id for hit in chats.search(text) if hit.is_relevant] == ["port"]


WORDS = ["port", "billing", "zebra", "LoadGuard", "src/db/pool.py", "порт", "東京都", "the", "x"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@examples(20)
@given(st.lists(st.tuples(st.sampled_from(["s1", "s2", "s3"]), texts, st.booleans()), max_size=12), texts)
def test_extended_segments_score_like_one_that_is_built_at_once(said, query):
    with open_archive() as archive:
        for session_id, text, folds in said:
            archive.say(session_id, text)
            if folds:
                archive.fold()
        extended = scores_of(archive, query)
        with archive.database.write() as db:
            index_state.request_turn_segment(db, anew=True)
        archive.fold()
        assert np.array_equal(extended, scores_of(archive, query))


def scores_of(archive, query):
    with archive.database.read() as db:
        return archive.open().lexical.search(db, search_tokens(query)).scores
