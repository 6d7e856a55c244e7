"""Answers from past sessions: what fixed an error, which command works, who changed a file, what often fails."""

from typing import Annotated, Literal

from pydantic import AliasPath, Field, StringConstraints

from pipeline.services import history
from pipeline.store.agent_sessions import ActionType
from web.api import bodies
from web.api.answers import Answer, Name, Rounded
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("history")

MAX_ABOUT_CHARS = 8000


class HistoryQuery(bodies.QueryString):
    """A question: `about` is an error text, or a tool or task, or a file."""

    ask: Literal["fix", "how", "blame", "friction"]
    about: Annotated[str, StringConstraints(max_length=MAX_ABOUT_CHARS)] = ""
    limit: Annotated[int, Field(ge=1, le=50)] = 5


class StepAnswer(Answer):
    """A command or an edited file."""

    type: ActionType
    target: str


class RemedyAnswer(Answer):
    """What was done before a failed command succeeded.

    Without steps, the command succeeded when it was run again. `confirmed` is whether the same command succeeded;
    otherwise the error only did not come back. `likeness` is below 1 for a similar error.
    """

    error: str | None = Field(validation_alias=AliasPath("remedy", "failure", "error"))
    command: str = Field(validation_alias=AliasPath("remedy", "failure", "target"))
    steps: list[StepAnswer] = Field(validation_alias=AliasPath("remedy", "steps"))
    session_id: Name = Field(validation_alias=AliasPath("remedy", "failure", "session_id"))
    session_name: str | None
    at: str = Field(validation_alias=AliasPath("remedy", "at"))
    sessions: int = Field(validation_alias=AliasPath("remedy", "sessions"))
    confirmed: bool = Field(validation_alias=AliasPath("remedy", "confirmed"))
    likeness: Rounded = Field(validation_alias=AliasPath("remedy", "likeness"))
    explanation: str | None


class HistoryAnswer(Answer):
    """The answer to a question about past sessions; lists that do not belong to the question are empty.

    `occurrences` is the number of times that the error occurred.
    """

    ask: str
    occurrences: int = 0
    remedies: list[RemedyAnswer] = Field(default_factory=list)


@api.route(Endpoint("GET", "/v1/history", answer=HistoryAnswer, problems=(404,)))
def ask_history(call: Call, query: HistoryQuery) -> HistoryAnswer:
    """Ask past sessions: what fixed an error, which command works, who changed a file, which errors are frequent."""
    report = history.find_fix(call.workspace, query.about, query.limit)
    remedies = [RemedyAnswer.model_validate(remedy) for remedy in report.remedies]
    return HistoryAnswer(ask=query.ask, occurrences=len(report.occurrences), remedies=remedies)
