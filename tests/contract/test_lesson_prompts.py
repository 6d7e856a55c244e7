"""Which lessons the labelled prompts are shown: the right one, and few others."""

import json

import pytest

from pipeline.index.encoder import OnnxEncoder
from pipeline.recall.relevance import RELEVANT
from tests.fakes.in_process import fast_settings
from tests.fakes.lessons import open_lesson_projects
from tests.fakes.workspace import DATA, load_labelled

PROJECTS = json.loads((DATA / "lesson_prompts.json").read_text(encoding="utf-8"))["projects"]
# A little below what is reached, as another processor rounds differently: 0.69 and 0.36.
PRECISION = 0.65
RECALL = 0.32


@pytest.fixture(scope="module")
def projects(compiled_model, tmp_path_factory):
    settings = fast_settings(tmp_path_factory.mktemp("lessons"))
    rules = [memory for memory in load_labelled("workspace.json") if memory["kind"] == "lesson"]
    fields = dict.fromkeys(("applies_when", "why", "command"))
    labelled = {
        "lessons": [{"id": rule["key"], "rule": rule["content"], "severity": "normal"} | fields for rule in rules]
    }
    with open_lesson_projects(settings, OnnxEncoder.load(compiled_model, threads=1), [*PROJECTS, labelled]) as opened:
        yield opened


def show(project, prompt):
    return [key for key, _ in project.choose(prompt)]


def judge(projects, part):
    """Return precision and recall per shown lesson."""
    right = shown = wanted = 0
    for project, labelled in zip(projects, PROJECTS, strict=False):
        for prompt in labelled["prompts"]:
            if prompt["part"] == part:
                lessons = show(project, prompt["prompt"])
                right += len(set(lessons) & set(prompt["lessons"]))
                shown += len(lessons)
                wanted += len(prompt["lessons"])
    return right / shown, right / wanted


def test_prompts_get_their_lesson_and_few_others(projects):
    precision, recall = judge(projects, "test")
    assert precision >= PRECISION
    assert recall >= RECALL


def test_unrelated_messages_get_no_more_lessons_than_other_memories(projects):
    messages = [message["text"] for message in load_labelled("messages.json") if not message["relevant"]]
    shown = [text for text in messages if show(projects[-1], text)]
    before = [text for text in messages if any(hit.relevance >= RELEVANT for hit in projects[-1].find(text).values())]
    assert len(shown) <= len(before)


def test_the_scores_of_another_search_change_no_lesson(projects):
    for project, labelled in zip(projects, PROJECTS, strict=False):
        for prompt in (labelled_prompt["prompt"] for labelled_prompt in labelled["prompts"][::3]):
            # The answers of both searches are cached under the message.
            assert project.choose(f"{prompt} ", after_search=True) == project.choose(prompt)
