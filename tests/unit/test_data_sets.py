import json
import re
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from pipeline.kernel.records import Kind
from tests.integration.ordinary_day.steps import ACTIONS, OUTSIDE, read_steps

DATA = Path(__file__).parents[1] / "data"
LANGUAGES = {"ru", "uk", "es", "de", "fr", "pt", "zh", "ja"}
PARTS = ("calibration", "test")
ENGLISH_WORDS = {"the", "and", "is", "are", "of", "to", "with", "for", "has", "by", "at"}
KANA = r"[\u3040-\u30ff]"
SCRIPTS = {"ru": r"[а-яё]", "uk": r"[а-щьюяєіїґ]", "zh": r"[\u4e00-\u9fff]", "ja": KANA}


def load(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def words(text):
    return set(re.findall(r"\w+", text.casefold()))


def is_english(text):
    """Tell whether a text is nearly all ASCII and has an English function word."""
    ascii_share = sum(character.isascii() for character in text) / len(text)
    return ascii_share > 0.97 and bool(words(text) & ENGLISH_WORDS)


@pytest.fixture(scope="module")
def steps():
    return read_steps()


@pytest.fixture(scope="module")
def memories():
    return {memory["key"]: memory for memory in load("workspace")["memories"]}


@pytest.fixture(scope="module")
def questions():
    return load("cross_language")["questions"]


@pytest.fixture(scope="module")
def messages():
    return load("messages")["messages"]


def part(messages, name, *, relevant=None):
    return [one for one in messages if one["part"] == name and relevant in (None, one["relevant"])]


def test_memories_have_unique_keys_and_contents(memories):
    stored = load("workspace")["memories"]
    assert len(memories) == len(stored) >= 220
    assert len({memory["content"].casefold() for memory in stored}) == len(stored)


def test_memories_have_the_fields_and_kinds_of_the_store(memories):
    for memory in memories.values():
        assert memory.keys() == {"key", "content", "kind", "session"}
        assert memory["kind"] in set(Kind)
        assert memory["session"] is None or memory["session"].strip()
        assert len(memory["content"]) <= 1000


def test_memories_are_grouped_in_sessions_and_mostly_english(memories):
    assert len({memory["session"] for memory in memories.values()}) >= 25
    english = [memory for memory in memories.values() if is_english(memory["content"])]
    assert 165 <= len(english) <= 180
    assert len(memories) - len(english) >= 50


def test_each_language_has_at_least_twelve_questions(questions):
    counts = Counter(question["language"] for question in questions)
    assert counts.keys() == LANGUAGES
    assert min(counts.values()) >= 12
    assert len({question["text"] for question in questions}) == len(questions)


def test_each_question_targets_a_distinct_english_memory(questions, memories):
    targets = [question["memory"] for question in questions]
    assert len(set(targets)) == len(targets)
    assert [key for key in targets if not is_english(memories[key]["content"])] == []


def test_at_most_a_quarter_of_the_questions_share_a_word_with_their_memory(questions, memories):
    sharing = [one for one in questions if words(one["text"]) & words(memories[one["memory"]]["content"])]
    assert len(sharing) <= len(questions) / 4


def test_messages_have_known_parts_and_existing_targets(messages, memories):
    for message in messages:
        assert message.keys() == {"part", "language", "text", "relevant", "memories", "why"}
        assert message["part"] in PARTS
        assert message["language"] in LANGUAGES | {"en"}
        assert set(message["memories"]) <= memories.keys()
        assert bool(message["memories"]) is message["relevant"]


@pytest.mark.parametrize("name", PARTS)
def test_half_of_each_part_is_relevant(messages, name):
    relevant, irrelevant = part(messages, name, relevant=True), part(messages, name, relevant=False)
    assert len(relevant) == len(irrelevant) >= 80


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize(("relevant", "share"), [(True, 0.65), (False, 0.6)])
def test_every_language_is_present_with_english_in_front(messages, name, relevant, share):
    counts = Counter(message["language"] for message in part(messages, name, relevant=relevant))
    assert counts.keys() == LANGUAGES | {"en"}
    assert counts["en"] / counts.total() == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("relevant", [True, False])
def test_lengths_reach_from_a_few_words_to_sixty_and_more(messages, name, relevant):
    lengths = [len(message["text"].split()) for message in part(messages, name, relevant=relevant)]
    assert min(lengths) <= 5
    assert sum(length >= 60 for length in lengths) >= 2


def test_every_message_is_unique(messages):
    texts = Counter(" ".join(re.findall(r"\w+", message["text"].casefold())) for message in messages)
    assert [text for text, count in texts.items() if count > 1] == []


def test_no_message_of_one_part_repeats_the_words_of_one_in_the_other(messages):
    pairs = product(*(part(messages, name) for name in PARTS))
    shared = [
        (one["text"], other["text"])
        for one, other in pairs
        if len(words(one["text"]) & words(other["text"])) > 0.5 * len(words(one["text"]) | words(other["text"]))
    ]
    assert shared == []


def test_the_parts_aim_at_different_memories(messages):
    calibration, test = ({message["memories"][0] for message in part(messages, name, relevant=True)} for name in PARTS)
    assert calibration & test == set()


def test_texts_are_written_in_the_script_of_their_language(messages, questions):
    for one in [*messages, *questions]:
        script = SCRIPTS.get(one["language"])
        if script is not None:
            assert re.search(script, one["text"], re.IGNORECASE), one
        if one["language"] == "zh":
            assert not re.search(KANA, one["text"]), one


def test_ordinary_day_covers_three_projects_in_four_languages(steps):
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) >= 150
    assert {step.day for step in steps} == {1, 2, 3}
    assert {step.project for step in steps} == {"slotbook", "vitrine", "riego", OUTSIDE}
    assert {step.language for step in steps} == {"en", "de", "es", "fr"}
    assert sum(step.silent is True for step in steps) >= 45
    times = [(step.day, step.at) for step in steps]
    assert times == sorted(times)


def test_each_ordinary_day_step_has_a_single_action_and_expectation(steps):
    expectations = ("shown", "first", "silent", "stored", "not_stored", "gone", "refused")
    for step in steps:
        assert sum(bool(getattr(step, name)) for name in ACTIONS) == 1, step
        assert step.blocked is not None or any(getattr(step, name) for name in expectations), step
        assert (step.say is None) or step.interrupted or step.reply, step


def test_ordinary_day_sessions_start_before_use_and_keep_their_project(steps):
    projects = {}
    for step in steps:
        if step.start:
            assert (step.session in projects) == (step.start in ("resume", "compact") and not step.forked_from), step
            projects.setdefault(step.session, step.project)
        if step.session is not None:
            assert projects[step.session] == step.project, step
