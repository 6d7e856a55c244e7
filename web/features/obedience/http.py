"""The report on rules: whether the acts after each use kept or broke them."""

from typing import Annotated

from pydantic import AliasPath, Field

from pipeline.features.obedience import usecases as obedience
from pipeline.features.obedience.usecases import Proposal, RuleVerdict
from web.http import bodies
from web.http.answers import Answer, Name
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("obedience", 66)


class ReportQuery(bodies.ViewerFields, bodies.QueryString):
    """The maximum number of rules."""

    limit: Annotated[int, Field(ge=1, le=bodies.MAX_PAGE)] = 20


class ReportedActAnswer(Answer):
    """An act that kept or broke a rule: its tool and target, and its line in the host's transcript."""

    at: str = Field(validation_alias=AliasPath("act", "at"))
    tool: str = Field(validation_alias=AliasPath("act", "tool"))
    target: str = Field(validation_alias=AliasPath("act", "target"))
    is_kept: bool = Field(validation_alias=AliasPath("act", "is_kept"))
    transcript: str
    line: int | None


class RuleUseAnswer(Answer):
    """A time that an agent of a session was shown a rule, and the acts that followed."""

    at: str = Field(validation_alias=AliasPath("impression", "at"))
    session_id: Name | None = Field(validation_alias=AliasPath("impression", "session_id"))
    agent_id: Name | None = Field(validation_alias=AliasPath("impression", "agent_id"))
    acts: list[ReportedActAnswer]


class RuleReportAnswer(Answer, names_memory=True):
    """A rule: how often it was shown, its latest uses, the acts that kept and broke it in these, and a proposal.

    `guard`: acts broke it twice, and it can block them. `archive`: it was shown often and never concerned an act.
    """

    id: str = Field(validation_alias=AliasPath("memory", "id"))
    content: str = Field(validation_alias=AliasPath("memory", "content"))
    shown: int
    kept: int
    broken: int
    verdict: RuleVerdict
    proposal: Proposal | None
    uses: list[RuleUseAnswer]


class RuleReportsAnswer(Answer):
    """Rules, those first that acts broke."""

    items: list[RuleReportAnswer]


@api.route(Endpoint("GET", "/v1/lessons/report", answer=RuleReportsAnswer, problems=(404,)))
def report_rules(call: Call, query: ReportQuery) -> RuleReportsAnswer:
    """Report for each rule that was shown which acts kept or broke it."""
    reports = obedience.report_rules(call.workspace, query.viewer(call.caller), query.limit)
    return RuleReportsAnswer(items=[RuleReportAnswer.model_validate(report) for report in reports])
