import re
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from demo.sample import FAKE_SECRET, exact_repeats, load_sample, secret_position
from pipeline.records import FactKey, Kind, Source
from pipeline.write.fact_placement import fact_text

SAMPLE = load_sample()
HISTORY = SAMPLE.history
QUESTIONS = (*SAMPLE.recalls, SAMPLE.hook)
FIELDS = {"content", "kind", "details", "importance", "tags", "metadata", "session_id", "source", "occurred_at"}
GERMAN = {"der", "die", "das", "und", "nicht", "ist", "ein", "eine", "mit", "nach", "auf", "bis"}


def words(text):
    return re.findall(r"\w+", text.lower())


def stems(text):
    return {word[:6] for word in words(text) if len(word) > 3}


def german(memory):
    return memory["metadata"]["lang"] == "de"


def test_it_holds_at_least_130_memories_over_at_least_12_sessions():
    assert len(HISTORY) >= 130
    assert len({m["session_id"] for m in HISTORY}) >= 12


def test_every_session_has_between_8_and_14_memories():
    sizes = Counter(m["session_id"] for m in HISTORY)
    assert all(8 <= n <= 14 for n in sizes.values()), sizes


def test_sessions_stand_one_after_the_other_in_time():
    assert all(a["occurred_at"] < b["occurred_at"] for a, b in pairwise(HISTORY))
    changes = sum(a["session_id"] != b["session_id"] for a, b in pairwise(HISTORY))
    assert changes == len({m["session_id"] for m in HISTORY}) - 1


@pytest.mark.parametrize("memory", HISTORY, ids=range(len(HISTORY)))
def test_every_memory_fits_the_contract(memory):
    assert set(memory) <= FIELDS
    assert 1 <= len(memory["content"]) <= 10_000
    assert memory["content"] == memory["content"].strip()
    Kind(memory["kind"])
    Source(memory["source"])
    assert 0 <= memory.get("importance", 0) <= 1
    assert len(memory.get("tags", [])) <= 20
    assert all(re.fullmatch(r"[a-z0-9-]{1,50}", tag) for tag in memory.get("tags", []))
    when = datetime.strptime(memory["occurred_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert datetime(2026, 1, 1, tzinfo=UTC) <= when < datetime(2026, 11, 1, tzinfo=UTC)


def test_every_kind_occurs():
    assert {m["kind"] for m in HISTORY} == {kind.value for kind in Kind}


def test_most_memories_are_between_10_and_80_words():
    usual = [m for m in HISTORY if 10 <= len(m["content"].split()) <= 80]
    assert len(usual) >= 0.95 * len(HISTORY)


def test_exactly_one_memory_repeats_an_earlier_one_in_the_same_scope_and_kind():
    (repeat,) = exact_repeats(HISTORY)
    first = next(i for i, m in enumerate(HISTORY) if m["content"] == HISTORY[repeat]["content"])
    assert first < repeat
    assert HISTORY[first]["kind"] == HISTORY[repeat]["kind"]
    assert HISTORY[first].get("scope") == HISTORY[repeat].get("scope")


def test_one_memory_says_the_repeated_one_in_other_words():
    (repeat,) = exact_repeats(HISTORY)
    said = stems(HISTORY[repeat]["content"])
    others = [stems(m["content"]) for m in HISTORY if m["content"] != HISTORY[repeat]["content"]]
    assert sum(len(said & other) / len(said | other) >= 0.25 for other in others) == 1


def test_one_teammate_writes_in_german_and_nobody_else_does():
    notes = [m for m in HISTORY if german(m)]
    assert len(notes) >= 10
    assert len({m["metadata"]["author"] for m in notes}) == 1
    assert all(GERMAN & set(words(m["content"])) for m in notes)
    assert not any(len(GERMAN & set(words(m["content"])) - {"die"}) > 1 for m in HISTORY if not german(m))


def test_one_document_is_long_and_the_detail_asked_for_is_late_in_it():
    (document,) = (m["content"] for m in HISTORY if m["kind"] == "document")
    assert 2_500 < len(document) < 10_000
    (detail,) = (q.expect for q in SAMPLE.recalls if q.expect in document)
    assert document.index(detail) > len(document) / 2


def test_a_fact_changes_and_the_late_value_is_the_one_asked_for():
    values = [m for m in HISTORY if m.get("details", {}).get("subject") == "staging database"]
    assert [m["details"]["value"] for m in values] == [5433, 6543]
    assert any(q.expect in values[-1]["content"] for q in SAMPLE.recalls)


def test_every_keyed_fact_has_a_key_and_a_value_and_its_text():
    facts = [m for m in HISTORY if m["kind"] == "keyed_fact"]
    assert len(facts) == 5
    for memory in facts:
        key = FactKey(memory["details"]["subject"], memory["details"]["attribute"])
        assert memory["content"] == fact_text(key, memory["details"]["value"])


def test_the_demo_asks_for_facts_whose_value_has_changed_since():
    for asked in SAMPLE.facts:
        values = [
            (m["occurred_at"], str(m["details"]["value"]))
            for m in HISTORY
            if m.get("details", {}).get("subject") == asked.subject
        ]
        assert [value for at, value in values if at <= asked.as_of][-1] == asked.expect != values[-1][1]


def test_the_secret_is_in_one_memory_and_plainly_fake():
    assert sum(FAKE_SECRET in m["content"] for m in HISTORY) == 1
    assert "password" in HISTORY[secret_position(HISTORY)]["content"]
    assert "not-real" in FAKE_SECRET


def test_small_talk_occurs():
    assert sum(m["kind"] == "episode" for m in HISTORY) >= 5


def test_there_are_five_recalls_and_one_hook():
    assert len(SAMPLE.recalls) == 5
    assert SAMPLE.hook.ask


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.ask)
def test_the_expected_memory_exists_exactly_once(question):
    assert sum(question.expect in m["content"] for m in HISTORY) == 1


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.ask)
def test_no_memory_repeats_the_wording_of_a_question(question):
    asked = words(question.ask)
    runs = {" ".join(asked[i : i + 4]) for i in range(len(asked) - 3)}
    assert not [m["content"] for m in HISTORY if any(run in " ".join(words(m["content"])) for run in runs)]
