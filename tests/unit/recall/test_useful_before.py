"""What was useful for a question ranks slightly higher for similar ones: for nobody else's, and never by its number."""

import pytest
from hypothesis import given, strategies as st

from pipeline.index.rare_terms import weigh_rare_terms
from pipeline.recall.rank import FEATURES
from pipeline.recall.useful_before import LEAST_SIMILARITY, find_useful
from pipeline.records import Filter, Viewer
from pipeline.records.recall import Query
from pipeline.store import useful_questions
from pipeline.store.useful_questions import MAX_QUESTIONS_PER_MEMORY, MAX_TERMS
from pipeline.write.revise import purge
from tests.fakes.in_process import dump
from tests.fakes.properties import opens_stores
from tests.fakes.recall_workspace import LONG_MS, open_recall_workspace

WEIGHT = next(feature.weight for feature in FEATURES if feature.name == "useful_before")
QUESTION = "which port does billing use"
PARAPHRASE = "what port is billing on"
UNRELATED = "who deploys the mill"
AT = "2026-11-21T00:00:00.000Z"


@pytest.fixture
def workspace():
    with open_recall_workspace() as workspace:
        yield workspace


def use(workspace, memory_id, question=QUESTION, person=None, at=AT):
    with workspace.database.write() as db:
        useful_questions.add(db, workspace.seq(memory_id), person, weigh_rare_terms(question), at)


def find(workspace, question, person=None):
    with workspace.database.read() as db:
        return dict(find_useful(db, Query(question, filter=Filter(viewer=Viewer(person=person)))))


def count_rows(workspace):
    with workspace.database.read() as db:
        return db.execute("SELECT count(*) FROM useful_term").fetchone()[0]


def test_of_two_equal_answers_the_useful_one_comes_first(workspace):
    older, newer = (workspace.write(f"billing uses port 81{number}") for number in (11, 22))
    assert workspace.find_ids(PARAPHRASE)[0] == newer
    use(workspace, older)
    assert workspace.find_ids(PARAPHRASE)[0] == older
    parts = {hit.memory.id: hit.signals.parts["useful_before"] for hit in workspace.ask(PARAPHRASE, explain=True).hits}
    assert 0 < parts[older] <= WEIGHT <= 0.05
    assert parts[newer] == 0


def test_a_clearly_better_answer_stays_first(workspace):
    better = workspace.write("billing uses port 8122")
    other = workspace.write("the mill burned down in a storm")
    use(workspace, other)
    assert workspace.find_ids(QUESTION)[0] == better


def test_it_makes_no_memory_relevant(workspace):
    other = workspace.write("the mill burned down in a storm")
    before = workspace.why(QUESTION, other)
    use(workspace, other)
    assert workspace.why(QUESTION, other).relevance == before.relevance


def test_only_similar_questions_of_the_same_person_profit(workspace):
    memory_id = workspace.write("billing uses port 8122")
    use(workspace, memory_id, person="ada")
    assert find(workspace, QUESTION, "ada") == {workspace.seq(memory_id): pytest.approx(1.0)}
    assert find(workspace, PARAPHRASE, "ada")
    assert find(workspace, UNRELATED, "ada") == {}
    assert find(workspace, QUESTION, "grace") == {}
    assert find(workspace, QUESTION) == {}


def test_the_same_question_counts_once(workspace):
    memory_id = workspace.write("billing uses port 8122")
    use(workspace, memory_id)
    first, rows = find(workspace, PARAPHRASE), count_rows(workspace)
    for number in range(50):
        use(workspace, memory_id, at=f"2026-11-22T00:00:00.{number:03}Z")
    assert find(workspace, PARAPHRASE) == first
    assert count_rows(workspace) == rows


TEXTS = st.lists(st.sampled_from(["billing", "port", "mill", "ada", "queue", "the", "storm"]), max_size=6).map(" ".join)


@opens_stores
@given(st.lists(st.tuples(st.integers(1, 3), TEXTS), max_size=30), TEXTS)
def test_whatever_was_used_no_similarity_exceeds_one(uses, question):
    with open_recall_workspace() as workspace:
        ids = [workspace.write(f"memory {number} about billing") for number in range(3)]
        for number, text in uses:
            use(workspace, ids[number - 1], text)
        assert all(LEAST_SIMILARITY <= similarity <= 1 for similarity in find(workspace, question).values())


def test_always_opening_the_first_result_leaves_the_order_of_other_questions(workspace):
    for number in range(30):
        workspace.write(f"service{number} listens on port {8000 + number}, and the mill{number % 7} runs on it")
    questions = [f"which port does service{number} use" for number in range(20)]
    others = [f"what runs on mill{number}" for number in range(7)]
    before = [workspace.find_ids(text) for text in others]
    for number in range(100):
        question = questions[number % len(questions)]
        use(workspace, workspace.find_ids(question)[0], question, at=f"2026-11-22T00:00:{number // 60:02}.{number:03}Z")
    assert [workspace.find_ids(text) for text in others] == before


def test_only_the_last_questions_of_a_memory_and_their_rarest_terms_are_kept(workspace):
    memory_id = workspace.write("billing uses port 8122")
    for number in range(MAX_QUESTIONS_PER_MEMORY + 5):
        use(workspace, memory_id, " ".join(f"word{number}x{part}" for part in range(20)), at=f"{AT[:-2]}{number:02}Z")
    assert count_rows(workspace) == MAX_QUESTIONS_PER_MEMORY * MAX_TERMS
    with workspace.database.read() as db:
        assert useful_questions.count(db, None) == MAX_QUESTIONS_PER_MEMORY
    last = " ".join(f"word{MAX_QUESTIONS_PER_MEMORY + 4}x{part}" for part in range(8))
    assert find(workspace, last)
    assert find(workspace, " ".join(f"word0x{part}" for part in range(8))) == {}


def test_only_so_many_questions_are_kept(workspace, monkeypatch):
    monkeypatch.setattr(useful_questions, "MAX_QUESTIONS", 3)
    for number in range(5):
        use(workspace, workspace.write(f"note {number}"), f"question{number}", at=f"{AT[:-2]}{number:02}Z")
    with workspace.database.read() as db:
        assert useful_questions.count(db, None) == 3
    assert [bool(find(workspace, f"question{number}")) for number in range(5)] == [False, False, True, True, True]


def test_no_word_of_a_question_is_stored(workspace):
    use(workspace, workspace.write("billing uses port 8122"), "where is the qwyjibofier")
    with workspace.database.read() as db:
        assert "qwyjibofier" not in "".join(dump(db))


def test_a_purge_deletes_the_questions_of_a_memory_and_those_that_mention_it(workspace):
    secret, other = workspace.write("visit the qwyjibofier"), workspace.write("billing uses port 8122")
    use(workspace, secret, "where do we go")
    use(workspace, other, "port of the qwyjibofier")
    use(workspace, other, UNRELATED)
    purge(workspace.database, secret)
    assert find(workspace, "port of the qwyjibofier") == {}
    assert list(find(workspace, UNRELATED)) == [workspace.seq(other)]


def test_what_was_forgotten_has_no_effect(workspace):
    memory_id = workspace.write("billing uses port 8122")
    use(workspace, memory_id)
    use(workspace, memory_id, person="ada")
    with workspace.database.write() as db:
        assert useful_questions.forget(db, None) == 1
    assert find(workspace, QUESTION) == {}
    assert find(workspace, QUESTION, "ada")


def test_a_cached_answer_does_not_outlive_a_use(workspace):
    older, newer = (workspace.write(f"billing uses port 81{number}") for number in (11, 22))
    query = Query(PARAPHRASE, budget_ms=LONG_MS)
    assert workspace.ask(query.text).hits[0].memory.id == newer
    use(workspace, older)
    assert workspace.ask(query.text).hits[0].memory.id == older
