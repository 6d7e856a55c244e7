"""The steps that order the hits after ranking."""

from dataclasses import replace

import pytest

from pipeline.kernel.records import CAPTURED_TAG, Anchor, Kind, Source
from pipeline.kernel.records.recall import Annotations, Hit, Query
from pipeline.prompt.sources.memories import choose_lines
from pipeline.recall.result_order import OF_STORE, explain_order, of_personal_store, order_hits, put_said_first
from tests.fakes.memories import PORT_DECISION

QUERY = "which port does staging use"
AT = "2026-01-01T03:04:05.000Z"
SAID = replace(PORT_DECISION, content="We format with ruff", kind=Kind.FACT)
CAPTURED = replace(SAID, seq=2, source=Source.AMBIENT, tags=(CAPTURED_TAG, "rule"))
NOTED = replace(SAID, seq=3, source=Source.AGENT)
COMMIT = replace(SAID, seq=4, source=Source.IMPORT, metadata={"commit": "8c41e0"})
OUTLINE = replace(SAID, seq=5, source=Source.IMPORT, kind=Kind.CODE, anchor=Anchor("format.py"))


def seqs(hits):
    return [hit.memory.seq for hit in hits]


def hit(memory, score, relevance=0.9):
    return Hit(memory, score, relevance)


@pytest.mark.parametrize("said", [SAID, CAPTURED])
@pytest.mark.parametrize("indexed", [COMMIT, OUTLINE])
def test_statements_of_the_user_come_before_indexed_memories(said, indexed):
    hits = put_said_first([hit(indexed, 1.0), hit(said, 0.6)], QUERY)
    assert seqs(hits) == [said.seq, indexed.seq]
    assert [one.score for one in hits] == [0.6, 0.6]
    assert seqs(choose_lines([hit(indexed, 1.0), hit(said, 0.6)], [], QUERY)) == [said.seq, indexed.seq]


def test_an_irrelevant_statement_of_the_user_changes_no_order():
    assert seqs(put_said_first([hit(COMMIT, 1.0), hit(SAID, 0.6, relevance=0.15)], QUERY)) == [COMMIT.seq, SAID.seq]


def test_a_note_of_an_agent_keeps_its_place():
    hits = [hit(NOTED, 1.0), hit(COMMIT, 0.9), hit(OUTLINE, 0.8), hit(SAID, 0.7), hit(replace(COMMIT, seq=6), 0.5)]
    assert seqs(put_said_first(hits, QUERY)) == [NOTED.seq, SAID.seq, COMMIT.seq, OUTLINE.seq, 6]


def test_without_statements_of_the_user_the_order_stays():
    hits = [hit(COMMIT, 1.0), hit(OUTLINE, 0.9), hit(NOTED, 0.8)]
    assert put_said_first(hits, QUERY) == hits
    assert put_said_first([], QUERY) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("which formatter do we use", "we format with ruff format here, line length 100"),
        ("what's our formatter?", "code gets formatted by ruff"),
        ("which linter do we use?", "please lint with biome, never with eslint"),
        ("which test runner do we have", "tests run under nox"),
        ("welchen Formatierer nutzen wir?", "bei uns wird alles mit ruff formatiert"),
        ("¿qué formateador usamos?", "aquí formateamos con ruff"),
        ("quel formateur on utilise ?", "on formate avec ruff"),
    ],
)
def test_statement_about_the_tool_answers_a_question_about_the_tool(query, said):
    rule = hit(replace(SAID, content=said), 0.2, relevance=0.03)
    other = hit(replace(SAID, seq=9, content="we use uv here"), 0.3, relevance=0.1)
    assert seqs(put_said_first([hit(OUTLINE, 1.0), hit(COMMIT, 0.8), other, rule], query)) == [1, 5, 4, 9]


@pytest.mark.parametrize(
    "query", ["which file defines the parser", "who reviews the number of slots", "where is the reminder sent"]
)
def test_another_question_moves_nothing(query):
    hits = [hit(OUTLINE, 1.0), hit(replace(SAID, content="we format with ruff"), 0.2, relevance=0.03)]
    assert put_said_first(hits, query) == hits


def test_an_imported_activity_is_history():
    imported = replace(COMMIT, kind=Kind.ACTIVITY, metadata={})
    assert seqs(put_said_first([hit(imported, 1.0), hit(SAID, 0.6)], QUERY)) == [SAID.seq, COMMIT.seq]


def test_an_explanation_names_each_step_that_moves_a_memory():
    code = Hit(replace(OUTLINE, id="code"), 1.0, 0.9, annotations=Annotations(missing=True))
    noted, said = replace(NOTED, id="noted"), replace(SAID, id="said")
    hits, personal = [code, hit(noted, 0.8, 0.5), hit(said, 0.6)], hit(replace(SAID, seq=8, id="personal"), 0.7, 0.7)
    query, steps = Query(QUERY, k=3), (*OF_STORE, of_personal_store([personal]))
    assert seqs(order_hits(hits, query, steps)) == [8, NOTED.seq, SAID.seq]
    assert list(explain_order(hits, query, steps, "code")) == [
        "missing_code_last: moved from number 1 to number 3",
        "personal_store: moved from number 3 to outside of the results",
    ]
