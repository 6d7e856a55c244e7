"""The labelled lessons of tests/data in real stores, searched with a real encoder."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from config.settings import Settings
from pipeline.features.lessons.search import find_lessons_for
from pipeline.index.encoder import Encoder
from pipeline.kernel.records import Draft, Filter, Kind, Stage, Viewer
from pipeline.kernel.records.recall import SEARCHED_CHANNELS, Hit, Query
from pipeline.recall.query_scores import QueryScores
from pipeline.recall.search import search
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, open_web, open_worker

PATIENT_MS = 10_000
MANY = 80


class LessonProject:
    """A project's lessons; hits are known by the ids of the data set."""

    def __init__(self, context: Any, keys: dict[str, str]) -> None:
        self._context = context
        self._keys = keys

    def find(self, prompt: str) -> dict[str, Hit]:
        """Return every lesson that a search finds for a prompt."""
        lessons = Filter(kinds=(Kind.LESSON,))
        query = Query(prompt, MANY, lessons, PATIENT_MS, channels=SEARCHED_CHANNELS, min_relevance=0.0)
        return {self._keys[hit.memory.id]: hit for hit in search(self._context, query).hits}

    def choose(self, prompt: str, *, after_search: bool = False) -> list[tuple[str, float]]:
        """Return the lessons that a prompt is shown, with their relevances; `after_search` shares a search's scores."""
        scores = QueryScores()
        if after_search:
            search(self._context, Query(prompt, budget_ms=PATIENT_MS), scores=scores)
        hits = find_lessons_for(self._context, Viewer(), prompt, PATIENT_MS, scores=scores)
        return [(self._keys[hit.memory.id], hit.relevance) for hit in hits]


@contextmanager
def open_lesson_projects(
    settings: Settings, encoder: Encoder, projects: list[dict[str, Any]]
) -> Iterator[list[LessonProject]]:
    container, worker = open_web(settings, encoder), open_worker(settings)
    worker.encoders = HeldEncoder(encoder)
    try:
        opened = []
        for number, project in enumerate(projects):
            name = f"project-{number}"
            receipts = accept_batch(container.databases.get(name, create=True), list(map(_draft, project["lessons"])))
            errors: list[str] = []
            digest_stage(worker, Stage.EMBED, worker.stages(name)[Stage.EMBED], errors.append, name)
            assert errors == []
            keys = {receipt.id: lesson["id"] for receipt, lesson in zip(receipts, project["lessons"], strict=True)}
            opened.append(LessonProject(container.contexts.get(container.workspace(name)), keys))
        yield opened
    finally:
        container.close()
        worker.close()


def _draft(lesson: dict[str, Any]) -> Draft:
    # "normal" is what a lesson without a severity has.
    details = {"rule": lesson["rule"], "applies_when": lesson["applies_when"]}
    if lesson["severity"] != "normal":
        details["severity"] = lesson["severity"]
    content = " ".join(filter(None, (lesson["rule"], lesson["why"], lesson["command"] and f"`{lesson['command']}`")))
    return Draft(content, Kind.LESSON, details={name: value for name, value in details.items() if value})
