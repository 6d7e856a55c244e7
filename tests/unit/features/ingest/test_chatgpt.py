"""What is read of ChatGPT's export: the branch that was seen last, without what went on behind it."""

import pytest

from pipeline.features.ingest.conversation_exports import read_chatgpt
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import MAX_CONTENT_CHARS, Kind
from tests.fakes.exports import EXPORTS, again, chatgpt_conversation, items, load, read, reasons_by_key, write

FIRST = "6666f0a0-0000-4000-8000-000000000001"


def _of(conversation, tmp_path):
    readings = read(read_chatgpt, write(tmp_path / "conversations.json", [conversation]))
    return [draft for item in items(readings).values() for draft in item.drafts]


def _node(role, text, *, parent, children=(), **message):
    return {
        "parent": parent,
        "children": list(children),
        "message": {
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
            "create_time": 1_718_000_000,
            **message,
        },
    }


def test_an_exchange_is_a_memory():
    item = items(read(read_chatgpt, EXPORTS / "chatgpt.json"))[FIRST]
    sensor, shipping, noted, *rules = item.drafts
    assert sensor.content == (
        "Q: Which temperature sensor fits the delivery vans?\n\nAttached: van-sensor.png\n\n"
        "A: Take the Kaltfuehler 3: it reports every 30 seconds and its battery lasts two years."
    )
    assert sensor.kind is Kind.QA
    assert sensor.details == {
        "question": "Which temperature sensor fits the delivery vans?\n\nAttached: van-sensor.png",
        "answer": "Take the Kaltfuehler 3: it reports every 30 seconds and its battery lasts two years.",
    }
    assert sensor.occurred_at == "2024-06-10T10:01:00.250Z"
    assert (sensor.session_id, sensor.tags, sensor.metadata) == (
        f"chatgpt:{FIRST}",
        ("chatgpt",),
        {"title": "Cold chain sensors"},
    )
    assert shipping.content == (
        "Q: Remember that we never ship above seven degrees.\n\nA: Noted, and the van rules are written down."
    )
    assert (noted.kind, noted.content) == (Kind.FACT, "Feldkorb never ships vegetables above seven degrees.")
    assert [(one.kind, one.details["title"]) for one in rules] == [(Kind.DOCUMENT, "Van rules")] * 2
    assert rules[1].content == "Van rules\n\n# Van rules\n\nDoors stay shut; the driver notes every stop."


def test_chatgpt_hidden_messages_and_other_branches_are_not_read():
    whole = " ".join(draft.content for draft in items(read(read_chatgpt, EXPORTS / "chatgpt.json"))[FIRST].drafts)
    for hidden in ("first wording", "nobody kept", "Comparing", "search(", "web page", "Be brief", "Model set context"):
        assert hidden not in whole


def test_chatgpt_conversations_without_text_or_memory_are_skipped():
    assert reasons_by_key(read(read_chatgpt, EXPORTS / "chatgpt.json")) == {
        "6666f0a0-0000-4000-8000-000000000002": "no text",
        "6666f0a0-0000-4000-8000-000000000003": "marked as not to be remembered",
    }


def test_chatgpt_conversation_read_before_is_unchanged():
    again(read_chatgpt, EXPORTS / "chatgpt.json")


def test_chatgpt_digest_ignores_unread_fields(tmp_path):
    one, other = chatgpt_conversation(1), chatgpt_conversation(1)
    other["is_archived"] = True
    other["mapping"]["n1"]["message"]["metadata"] = {"model_slug": "gpt-6", "citations": [{"a": 1}]}
    path = write(tmp_path / "conversations.json", [one])
    known = {key: item.digest for key, item in items(read(read_chatgpt, path)).items()}
    assert items(read(read_chatgpt, write(path, [other]), known)) == {}
    other["mapping"]["n1"]["message"]["content"]["parts"] = ["Another answer."]
    assert items(read(read_chatgpt, write(path, [other]), known)).keys() == known.keys()


def test_without_a_current_node_the_latest_leaf_counts(tmp_path):
    mapping = {
        "q": _node("user", "Which one?", parent=None, children=("old", "new")),
        "new": _node("assistant", "The later.", parent="q", create_time=1_718_000_020),
        "old": _node("assistant", "The earlier.", parent="q", create_time=1_718_000_010),
    }
    drafts = _of({"id": "c", "current_node": None, "mapping": mapping}, tmp_path)
    assert [draft.content for draft in drafts] == ["Q: Which one?\n\nA: The later."]


def test_a_tree_that_runs_in_a_circle_ends(tmp_path):
    mapping = {
        "a": _node("user", "Round?", parent="b", children=("b",)),
        "b": _node("assistant", "And round.", parent="a", children=("a",)),
    }
    drafts = _of({"id": "c", "current_node": "b", "mapping": mapping}, tmp_path)
    assert [draft.content for draft in drafts] == ["Q: Round?\n\nA: And round."]


def test_consecutive_messages_of_a_side_are_joined(tmp_path):
    mapping = {
        "1": _node("user", "First.", parent=None),
        "2": _node("user", "Second.", parent="1"),
        "3": _node("assistant", "Both.", parent="2"),
        "4": _node("assistant", "Truly.", parent="3"),
        "5": _node("user", "And alone?", parent="4"),
    }
    drafts = _of({"id": "c", "current_node": "5", "mapping": mapping}, tmp_path)
    assert [draft.content for draft in drafts] == ["Q: First.\n\nSecond.\n\nA: Both.\n\nTruly.", "Q: And alone?"]


def test_a_long_answer_is_split_not_cut(tmp_path):
    words = " ".join(f"word{number}" for number in range(6000))
    mapping = {"1": _node("user", "Count!", parent=None), "2": _node("assistant", words, parent="1")}
    drafts = _of({"id": "c", "current_node": "2", "mapping": mapping}, tmp_path)
    assert len(drafts) > 4
    assert all(len(draft.content) <= MAX_CONTENT_CHARS for draft in drafts)
    assert " ".join(draft.content for draft in drafts).split() == f"Q: Count! A: {words}".split()
    # Each says what it answers.
    assert {draft.details["question"] for draft in drafts} == {"Count!"}


def test_a_link_keeps_its_text(tmp_path):
    text = "See \ue200url\ue202the manual\ue202https://example.com/m\ue201 \ue200navlist\ue202x\ue202turn0\ue201 first."
    mapping = {"1": _node("assistant", text, parent=None)}
    assert _of({"id": "c", "current_node": "1", "mapping": mapping}, tmp_path)[0].content == "A: See the manual first."


def test_exports_of_2023_are_read_alike(tmp_path):
    """Then there was no conversation_id, no recipient in places, and a list under a name in some tools' copies."""
    conversation = chatgpt_conversation(7)
    del conversation["conversation_id"]
    for node in conversation["mapping"].values():
        (node["message"] or {}).pop("recipient", None)
    assert items(read(read_chatgpt, write(tmp_path / "c.json", [conversation]))).keys() == {"talk-7"}
    assert items(read(read_chatgpt, write(tmp_path / "c.json", {"conversations": [conversation]}))).keys() == {"talk-7"}


def test_a_conversation_without_an_id_is_left_out(tmp_path):
    conversation = chatgpt_conversation(7) | {"id": None, "conversation_id": ["x"]}
    path = write(tmp_path / "c.json", [conversation, chatgpt_conversation(8)])
    readings = read(read_chatgpt, path)
    assert reasons_by_key(readings) == {"c.json #1": "a conversation without an id"}
    assert items(readings).keys() == {"talk-8"}


@pytest.mark.parametrize("name", ["claude.json", "mem0.json", "pmb.json", "claude_memories.json"])
def test_file_that_is_no_chatgpt_export_is_rejected(name):
    with pytest.raises(InvalidField, match=r"data export of ChatGPT \(conversations.json"):
        read(read_chatgpt, EXPORTS / name)


def test_chatgpt_export_without_conversations_is_empty(tmp_path):
    assert read(read_chatgpt, write(tmp_path / "conversations.json", [])) == []


def test_chatgpt_fixture_has_the_fields_of_an_export():
    """A fixture that drifted from the format would prove nothing."""
    conversation = load("chatgpt.json")[0]
    assert conversation.keys() >= {"title", "create_time", "update_time", "mapping", "current_node", "conversation_id"}
    for node in conversation["mapping"].values():
        assert node.keys() == {"id", "message", "parent", "children"}


def test_chatgpt_conversation_with_an_oversized_text_is_skipped(tmp_path):
    path = write(tmp_path / "c.json", [chatgpt_conversation(1, 1, "x" * 4_000_000), chatgpt_conversation(2)])
    readings = read(read_chatgpt, path)
    assert reasons_by_key(readings) == {"talk-1": "contains a text of more than 4,000,000 characters"}
    assert items(readings).keys() == {"talk-2"}


def test_invisible_text_is_no_question(tmp_path):
    mapping = {"1": _node("user", "\u200b\ufeff", parent=None), "2": _node("assistant", "Hello.", parent="1")}
    (draft,) = _of({"id": "c", "current_node": "2", "mapping": mapping}, tmp_path)
    assert (draft.content, draft.details) == ("A: Hello.", {"answer": "Hello."})


def test_ambiguous_sides_are_stored_as_a_single_text(tmp_path):
    mapping = {"1": _node("user", "Say\n\nA: b", parent=None), "2": _node("assistant", "b", parent="1")}
    (draft,) = _of({"id": "c", "current_node": "2", "mapping": mapping}, tmp_path)
    assert (draft.content, draft.details) == ("Q: Say\n\nA: b\n\nA: b", {})
