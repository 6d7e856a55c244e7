"""Answers from past sessions: what fixed an error, which command works, who changed a file."""

from enum import StrEnum
from typing import Annotated

from pydantic import AliasPath, Field, StringConstraints

from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.sessions import usecases as history
from pipeline.sessions.file_history import CommitTime, Decision
from pipeline.sessions.invocations import Invocation
from pipeline.write.fields import Moment
from pipeline.write.tool_actions import ToolTarget
from web.http import bodies
from web.http.answers import Answer, Name, Rounded
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("history")

MAX_ABOUT_CHARS = 8000
MAX_SUBJECT_CHARS = 500


class Ask(StrEnum):
    """A question about past sessions."""

    FIX = "fix"
    HOW = "how"
    BLAME = "blame"
    FRICTION = "friction"


class PastQuestion(bodies.QueryString):
    """A question: `about` is an error text, a tool or task, or a file.

    For a line of a file, `commit_at` and `commit_subject` are the time and subject of the commit that changed it.
    """

    ask: Ask
    about: Annotated[str, StringConstraints(max_length=MAX_ABOUT_CHARS)] = ""
    commit_at: Moment | None = None
    commit_subject: Annotated[str, StringConstraints(max_length=MAX_SUBJECT_CHARS)] = ""
    limit: Annotated[int, Field(ge=1, le=50)] = 5


class StepAnswer(Answer, of=ToolTarget):
    """A command or an edited file."""


class RemedyAnswer(Answer, of=history.ReportedRemedy, flat="remedy", without=("failure", "success")):
    """What was done before a failed command succeeded.

    Without steps, the command succeeded when it was run again. `confirmed` is whether the same command succeeded;
    otherwise the error only did not come back. `likeness` is below 1 for a similar error.
    """

    error: str | None = Field(validation_alias=AliasPath("remedy", "failure", "error"))
    command: str = Field(validation_alias=AliasPath("remedy", "failure", "target"))
    steps: list[StepAnswer] = Field(validation_alias=AliasPath("remedy", "steps"))
    session_id: Name = Field(validation_alias=AliasPath("remedy", "failure", "session_id"))
    at: str = Field(validation_alias=AliasPath("remedy", "at"))
    likeness: Rounded = Field(validation_alias=AliasPath("remedy", "likeness"))


class CommandAnswer(Answer, of=Invocation):
    """A command that works: how often it and its variants succeeded, and when and in which session last."""


class DecisionAnswer(Answer, of=Decision):
    """A conclusion of a session, or a memory of it with its id."""


class FileSessionAnswer(Answer, of=history.ReportedSession, flat="session"):
    """A session behind a file. `wrote_line` marks the session that made the commit of the line."""


class FrictionAnswer(Answer, of=history.Friction, flat="error", without=("signature",)):
    """An error that occurred in several sessions, and the remedy that worked, if one is known."""


class PastAnswer(Answer, of=history.HistoryReport):
    """The answer to a question about past sessions; lists that do not belong to the question are empty.

    `occurrences` is the number of times that the error occurred.
    """


@api.route(Endpoint("GET", "/v1/history", answer=PastAnswer, problems=(404,)))
def ask_history(call: Call, query: PastQuestion) -> history.HistoryReport:
    """Ask past sessions: what fixed an error, which command works, what is behind a file, which errors return."""
    if query.ask is Ask.FRICTION:
        return history.list_friction(call.workspace, query.limit)
    if not query.about.strip():
        raise InvalidField(FieldError("about", "is required for this question"))
    if query.ask is Ask.FIX:
        return history.find_fix(call.workspace, query.about, query.limit)
    if query.ask is Ask.HOW:
        return history.find_commands(call.workspace, query.about, query.limit)
    commit = CommitTime(query.commit_subject, query.commit_at) if query.commit_at else None
    return history.explain_file(call.workspace, query.about, commit, query.limit)
