"""The import of sessions: its progress, and questions that the imported sessions answer."""

from datetime import UTC, datetime
from typing import Literal

from pipeline.services.imported_sessions import read_imported_sessions
from pipeline.services.starter_questions import find_questions
from web.access import Access
from web.api.answers import Answer
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("session_import")

QUESTIONS = 3


class ImportProgressAnswer(Answer):
    """The imported sessions of all workspaces, and the files of the running or last import.

    `text` says in one line how far the import is, or what was imported. It is null before the first import.
    `workspaces` is the number of imported sessions by workspace.
    """

    text: str | None
    running: bool
    sessions: int
    first_at: str | None
    last_at: str | None
    files: int
    files_total: int
    workspaces: dict[str, int]


class QuestionAnswer(Answer):
    """A question for `POST /v1/recall`, or a task for `GET /v1/history?ask=how`."""

    ask: Literal["recall", "how"]
    text: str


class QuestionsAnswer(Answer):
    """Questions that past sessions answer."""

    questions: list[QuestionAnswer]


@api.route(Endpoint("GET", "/v1/sessions/import", answer=ImportProgressAnswer, needs=Access.ADMIN))
def read_progress(call: Call) -> ImportProgressAnswer:
    """Report the progress of the import of sessions, and what was imported."""
    container = call.container
    workspaces = [call.enter(name) for name in container.databases.ids() if call.may_enter(name)]
    imported = read_imported_sessions(workspaces, container.stores.transcripts)
    progress, count = imported.progress, imported.count
    return ImportProgressAnswer(
        text=imported.describe(datetime.now(UTC)),
        running=progress is not None and progress.is_running,
        sessions=count.sessions,
        first_at=count.first_at,
        last_at=count.last_at,
        files=0 if progress is None else progress.files,
        files_total=0 if progress is None else progress.files_total,
        workspaces=dict(imported.by_workspace),
    )


@api.route(Endpoint("GET", "/v1/sessions/questions", answer=QuestionsAnswer, problems=(404,)))
def list_questions(call: Call) -> QuestionsAnswer:
    """Return questions that imported sessions of the workspace answer with the first result, for a new user."""
    questions = find_questions(call.workspace, call.container.contexts, QUESTIONS)
    return QuestionsAnswer(questions=[QuestionAnswer.model_validate(question) for question in questions])
