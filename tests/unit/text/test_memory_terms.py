"""What a memory is found by: every text that an agent is shown of it, its tags and its metadata."""

from dataclasses import replace

import pytest

from pipeline.kernel.records import CAPTURED_TAG, Anchor, Draft, Kind
from pipeline.text.memory_terms import embedded_text, list_value_texts, memory_terms
from pipeline.text.tokens import memory_tokens, metadata_term
from pipeline.write.prepare import prepare

MOVED = Draft("We moved the jobs", kind=Kind.DECISION)


@pytest.mark.parametrize(
    ("kind", "details", "term"),
    [
        (Kind.DECISION, {"reason": "Celery leaked memory under gevent"}, "celeri"),
        (Kind.DECISION, {"alternatives": ["RabbitMQ"]}, "rabbit"),
        (Kind.LESSON, {"rule": "Run make check first"}, "check"),
        (Kind.LESSON, {"applies_when": "pushing a branch"}, "branch"),
        (Kind.QA, {"question": "Who owns billing?"}, "bill"),
        (Kind.QA, {"answer": "The ledger team"}, "ledger"),
        (Kind.DOCUMENT, {"title": "Runbook for failover"}, "failov"),
        (Kind.CODE, {"symbol": "Ledger.close"}, "ledger.close"),
        (Kind.MILESTONE, {"chain": "migration"}, "migrat"),
    ],
    ids=str,
)
def test_the_fields_of_a_kind_are_terms_and_embedded(kind, details, term):
    memory = prepare(replace(MOVED, kind=kind, details=details)).memory
    assert term in memory_terms(memory)
    assert embedded_text(memory) != memory.content


def test_tags_and_the_file_are_terms():
    memory = prepare(replace(MOVED, tags=("shop-4711",), anchor=Anchor("src/jobs/runner.py"))).memory
    assert {"shop-4711", "runner.py"} <= set(memory_terms(memory))


def test_metadata_is_found_by_its_values_as_a_field():
    memory = prepare(replace(MOVED, metadata={"ticket": {"key": "OPS-977", "weight": 3}})).memory
    terms = memory_terms(memory)
    assert metadata_term("ops-977") in terms
    assert not {"ops-977", "ticket", metadata_term("ticket")} & set(terms)


def test_texts_of_a_value_of_any_depth_are_listed_in_order():
    value = {"first": ["one", {"second": "two"}], "third": ("three", 4, None)}
    assert list(list_value_texts(value)) == ["one", "two", "three"]
    assert list(list_value_texts(value, with_keys=True)) == ["first", "one", "second", "two", "third", "three"]
    deep = "inside"
    for _ in range(10_000):
        deep = {"a": [deep]}
    assert list(list_value_texts(deep)) == ["inside"]


def test_the_class_of_a_captured_statement_is_no_term():
    memory = prepare(replace(MOVED, tags=(CAPTURED_TAG, "decision"))).memory
    assert "decis" not in memory_terms(memory)


def test_a_field_that_repeats_the_content_is_embedded_once():
    memory = prepare(Draft("Run make check", kind=Kind.LESSON, details={"rule": "Run make check"})).memory
    assert embedded_text(memory) == "Run make check"


@pytest.mark.parametrize("text", ["We moved the jobs", "Wir haben sie verlegt", "¿Por qué? Porque sí.", "Déjà vu"])
def test_terms_of_a_plain_memory_are_those_of_its_content(text):
    memory = prepare(Draft(text, occurred_at="2026-03-01T10:00:00.000Z")).memory
    assert memory_terms(memory) == memory_tokens(text, memory.occurred_at)
    assert embedded_text(memory) == text
