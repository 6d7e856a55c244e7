"""The labelled lessons of tests/data in real stores, searched with a real encoder."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from config.settings import Settings
from pipeline.context.lesson_bar import find_lesson_hits
from pipeline.index.encoder import Encoder
from pipeline.records import Draft, Kind, Stage, Viewer
from pipeline.records.recall import Hit
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, open_web, open_worker

PATIENT_MS = 10_000


class LessonProject:
    """A project's lessons; hits are known by the ids of the data set."""

    def __init__(self, context: Any, keys: dict[str, str]) -> None:
        self._context = context
        self._keys = keys

    def find(self, prompt: str) -> dict[str, Hit]:
        """Return every lesson that the search compares with a prompt."""
        hits = find_lesson_hits(self._context, Viewer(), prompt, PATIENT_MS)
        return {self._keys[hit.memory.id]: hit for hit in hits}


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
