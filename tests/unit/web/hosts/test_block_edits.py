"""The block in a file of rules comes out again to the byte."""

from hypothesis import given, strategies as st

from web.hosts import rules_block
from web.hosts.entries import EntryUndo, RulesBlock
from web.hosts.host import compose_rules

RULES = compose_rules(None)
ENTRY = RulesBlock(RULES)
texts = st.builds(
    lambda parts, newline: "".join(parts).replace("\n", newline),
    st.lists(st.sampled_from(["# Rules\n", "\n", "- a", " ", "é", "<!-- note -->", "```\n"]), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)


@given(texts)
def test_block_is_removed_to_the_byte(text):
    added = rules_block.add_entries(text, [ENTRY], EntryUndo()).text
    assert rules_block.remove_entries(added, [ENTRY], None).text == text


@given(texts)
def test_adding_twice_is_adding_once(text):
    once = rules_block.add(text, RULES)
    assert rules_block.add(once, RULES) == once


@given(texts, texts)
def test_the_text_around_it_stays(before, after):
    added = rules_block.add(before, RULES) + after
    assert rules_block.remove(added).replace("\r", "") == (before + after).replace("\r", "")


def test_old_block_is_updated_in_place():
    text = f"a\n\n{rules_block.BEGIN}\nold\n{rules_block.END}\n\nb\n"
    assert rules_block.add(text, "new") == f"a\n\n{rules_block.BEGIN}\nnew\n{rules_block.END}\n\nb\n"


def test_a_file_made_for_it_is_bare_again():
    entry = RulesBlock(RULES, "---\nalwaysApply: true\n---\n")
    added = rules_block.add_entries(None, [entry], EntryUndo()).text
    assert added.startswith(entry.head)
    assert rules_block.remove_entries(added, [entry], None).bare
    assert not rules_block.remove_entries(added + "mine\n", [entry], None).bare


def test_the_rules_are_short():
    assert len(rules_block.add("", RULES).splitlines()) <= 12
