"""Agents are not shown what a rule file of their project says, nor a memory that repeats it."""

from datetime import UTC, datetime

import pytest

from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.sources import forget_items, take_items
from pipeline.kernel.records import RULE_FILE_TAG, Draft, Kind, Source
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import Hit
from pipeline.kernel.store import memories
from pipeline.prompt.render import is_repeated, leave_out_rules, leave_out_rules_of_groups, list_rules
from pipeline.prompt.start.session_brief import BriefRoom, brief_project
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database, workspace_over

RULES = "memory:rules:shop-0d1a25a8"
RULE = "Always install packages with pnpm, because the lock file is shared."


@pytest.fixture
def workspace():
    with scratch_database() as database:
        yield workspace_over(database)


@pytest.fixture
def index_rules(workspace):
    def index(*statements, digest="1"):
        drafts = (
            Draft(text, kind=Kind.DOCUMENT, tags=("rules", RULE_FILE_TAG), source=Source.IMPORT) for text in statements
        )
        take_items(workspace, RULES, [Item("CLAUDE.md", digest, tuple(drafts))])

    return index


@pytest.fixture
def hits(workspace):
    def find():
        with workspace.database.read() as db:
            stored = memories.by_seqs(db, memories.all_seqs(db)).values()
        return [Hit(memory, 1.0, 0.9) for memory in stored]

    return find


def brief(workspace):
    brief = brief_project(
        workspace.database, None, AgentSession("s1"), BriefRoom(4000, datetime(2026, 1, 2, tzinfo=UTC))
    )
    return "" if brief is None else brief.text


def test_rule_file_memories_and_their_duplicates_are_left_out(workspace, index_rules, hits):
    index_rules(RULE, "Prefer small commits.")
    accept(workspace.database, Draft("Install packages with pnpm", kind=Kind.DECISION))
    accept(workspace.database, Draft("Install packages with npm", kind=Kind.DECISION))
    accept(workspace.database, Draft("The checkout listens on port 8123", kind=Kind.DECISION))
    assert len(list_rules(workspace.database)) == 2
    shown = {hit.memory.content for hit in leave_out_rules([workspace.database], hits())}
    assert shown == {"Install packages with npm", "The checkout listens on port 8123"}
    text = brief(workspace)
    assert "npm" in text
    assert "pnpm" not in text


def test_memory_is_shown_again_after_its_rule_file_is_forgotten(workspace, index_rules, hits):
    accept(workspace.database, Draft("Install packages with pnpm", kind=Kind.DECISION))
    index_rules(RULE)
    assert leave_out_rules([workspace.database], hits()) == ()
    forget_items(workspace, RULES, ["CLAUDE.md"])
    contents = {hit.memory.content for hit in leave_out_rules([workspace.database], hits())}
    assert "Install packages with pnpm" in contents


def test_grouped_and_separate_rule_exclusion_are_equal(workspace, index_rules, hits):
    index_rules(RULE)
    accept(workspace.database, Draft("Install packages with pnpm", kind=Kind.DECISION))
    accept(workspace.database, Draft("The checkout listens on port 8123", kind=Kind.DECISION))
    groups = [hits(), [], hits()[::-1]]
    alone = [leave_out_rules([workspace.database], group) for group in groups]
    assert leave_out_rules_of_groups([workspace.database], groups) == alone


def test_rule_file_memory_is_recalled_but_not_injected(workspace, index_rules, hits):
    index_rules(RULE)
    (hit,) = hits()
    assert hit.memory.is_of_rule_file
    assert not hit.memory.may_be_injected


@pytest.mark.parametrize(
    ("statement", "rule", "repeats"),
    [
        ("prefer small commits", "Prefer small commits.", True),
        ("Install packages with pnpm", RULE, True),
        ("Install packages with npm", RULE, False),
        ("Push to main", "Never push to main", False),
        ("Never push to main", "Push to main", False),
        ("Always install packages with pnpm, and commit the lock file after a review.", "Install packages", False),
        ("", "Prefer small commits.", False),
        ("Prefer small commits. " * 40, "Prefer small commits.", False),
    ],
)
def test_a_statement_is_repeated_by_the_same_or_more(statement, rule, repeats):
    assert is_repeated(statement, rule) is repeats
