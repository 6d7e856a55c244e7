"""What is read of PMB: every type of event that its export holds, as the kind that it is here."""

import pytest

from pipeline.features.ingest.memory_exports import read_pmb
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Kind
from tests.fakes.exports import EXPORTS, again, items, load, read, reasons_by_key, write


def _drafts(readings):
    return {draft.content: draft for item in items(readings).values() for draft in item.drafts}


def _one(tmp_path, **event):
    export = {"workspace": {"id": "w", "name": "feldkorb"}, "exported_at": "2026-02-25 06:20", "n_events": 1}
    whole = {"ulid": "u", "type": "fact", "content": "Vans leave at six.", "timestamp": 1772000000.5, "metadata": {}}
    readings = read(read_pmb, write(tmp_path / "p.json", export | {"events": [whole | event]}))
    return next(iter(_drafts(readings).values()), None) or reasons_by_key(readings)


def test_events_are_read_as_the_kinds_that_they_are():
    found = _drafts(read(read_pmb, EXPORTS / "pmb.json"))
    assert {content: draft.kind for content, draft in found.items()} == {
        "The billing service reads its rates from Postgres 16.": Kind.FACT,
        "Always run the migrations before the smoke tests.": Kind.LESSON,
        "Retrying the webhook without a key created double charges.": Kind.LESSON,
        "Move the queue to Redis": Kind.GOAL,
        "Edited queue.py": Kind.ACTIVITY,
        "Chose Redis over RabbitMQ for the queue": Kind.DECISION,
        "Queue tests pass on Redis": Kind.MILESTONE,
        "Q: Which port does the proxy use?\n\nA: It listens on 8443.": Kind.QA,
        "user editor: zed": Kind.KEYED_FACT,
        "I prefer tabs": Kind.FACT,
        "We moved the queue.": Kind.EPISODE,
        'def vat(net):\n    return net * Decimal("0.07")': Kind.CODE,
    }


def test_dates_tags_weights_and_projects_are_kept():
    found = _drafts(read(read_pmb, EXPORTS / "pmb.json"))
    fact = found["The billing service reads its rates from Postgres 16."]
    assert fact.occurred_at == "2026-02-25T06:13:20.250Z"
    assert (fact.tags, fact.importance) == (("pmb", "billing", "postgres"), 0.7)
    assert fact.metadata == {"source": "cli", "workspace": "feldkorb"}
    lesson = found["Always run the migrations before the smoke tests."]
    assert lesson.tags == ("pmb", "atlas")
    assert lesson.metadata["project"] == "atlas"
    assert found["Retrying the webhook without a key created double charges."].tags == ("pmb", "failure")
    # PMB weighs a decision as any activity.
    assert found["Chose Redis over RabbitMQ for the queue"].importance is None


def test_typed_fields_are_kept():
    found = _drafts(read(read_pmb, EXPORTS / "pmb.json"))
    assert found["Move the queue to Redis"].details == {
        "status": "in_progress",
        "progress": 0.0,
        "due_at": "2026-09-21T14:13:20.000Z",
    }
    assert found["Queue tests pass on Redis"].details == {"chain": "queue"}
    assert found["user editor: zed"].details == {"subject": "user", "attribute": "editor", "value": "zed"}
    assert found["Q: Which port does the proxy use?\n\nA: It listens on 8443."].details == {
        "question": "Which port does the proxy use?",
        "answer": "It listens on 8443.",
    }


def test_archived_index_and_extracted_events_are_skipped():
    assert sorted(reasons_by_key(read(read_pmb, EXPORTS / "pmb.json")).values()) == [
        "an index of a project's files",
        "archived",
        "extracted from another memory",
    ]


def test_pmb_digest_ignores_access_counts(tmp_path):
    again(read_pmb, EXPORTS / "pmb.json")
    export = load("pmb.json")
    known = {key: item.digest for key, item in items(read(read_pmb, EXPORTS / "pmb.json")).items()}
    for event in export["events"]:
        event["access_count"] += 3
    assert items(read(read_pmb, write(tmp_path / "p.json", export), known)) == {}


@pytest.mark.parametrize(
    ("metadata", "details"),
    [
        ({"goal_status": "done", "goal_progress": 100}, {"status": "done", "progress": 1.0}),
        ({"goal_status": "cancelled"}, {"status": "dropped"}),
        ({"goal_status": "someday", "goal_progress": 250, "due_at": 1e300}, {}),
        ({"goal_status": ["done"], "goal_progress": "half", "due_at": "soon"}, {}),
    ],
)
def test_goal_keeps_its_valid_details(tmp_path, metadata, details):
    assert _one(tmp_path, type="goal", metadata=metadata).details == details


def test_a_value_whose_key_cannot_be_kept_stays_a_fact(tmp_path):
    metadata = {"keyed_fact_subject": "!!", "keyed_fact_attribute": "editor", "keyed_fact_value": "zed"}
    assert _one(tmp_path, content="!! editor: zed", metadata=metadata).kind is Kind.FACT
    metadata |= {"keyed_fact_subject": "ada", "keyed_fact_value": {"a": 1}}
    assert _one(tmp_path, content="ada editor: …", metadata=metadata).kind is Kind.FACT


def test_a_draft_of_a_lesson_is_left_out(tmp_path):
    assert _one(tmp_path, metadata={"kind": "lesson", "draft": True}) == {"u": "a lesson without a text"}


def test_unknown_types_are_facts_that_say_their_type(tmp_path):
    draft = _one(tmp_path, type="reflection", importance=7)
    assert (draft.kind, draft.tags, draft.importance) == (Kind.FACT, ("pmb", "reflection"), None)


@pytest.mark.parametrize("name", ["chatgpt.json", "claude.json", "mem0.json"])
def test_file_that_is_no_pmb_export_is_rejected(name):
    with pytest.raises(InvalidField, match="pmb export --format json"):
        read(read_pmb, EXPORTS / name)


def test_the_markdown_and_the_encrypted_export_are_refused(tmp_path):
    (tmp_path / "memory.md").write_text("# PMB memory export - feldkorb\n")
    (tmp_path / "memory.enc").write_bytes(b"PMB1\x00\x01\x02")
    for name in ("memory.md", "memory.enc"):
        with pytest.raises(InvalidField, match="is not a JSON list or object"):
            read(read_pmb, tmp_path / name)
