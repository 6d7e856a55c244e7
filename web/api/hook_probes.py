"""A probe of hooks: events with its id run in a scratch data directory, which the end of the probe removes."""

from typing import Annotated

from pydantic import Field, StringConstraints

from pipeline.services.hook_probes import MOST_RUNS, ProbeReport, find_write_problem, report_probe
from web.access import Access
from web.api import bodies
from web.api.answers import Answer
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("hook_probes")


class ProbeAnswer(Answer):
    """The id of a probe, for the header X-Reverie-Probe; and why the workspace accepts no writes, if so."""

    id: str
    problem: str | None


class ProbedEventAnswer(Answer):
    """An event that arrived, and why nothing was shown for it, if so."""

    event: str
    outcome: str
    reason: str | None


class ProbeReportAnswer(Answer):
    """The events of a probe, the number of memories that they stored, and whether a turn was stored."""

    events: list[ProbedEventAnswer] = Field(validation_alias="runs")
    memories: int
    is_turn_stored: bool


class ProbeQuery(bodies.QueryString):
    """The host whose turn is sought."""

    host: Annotated[str, StringConstraints(max_length=64)] = ""


@api.route(
    Endpoint(
        "POST",
        "/v1/hook-probes",
        answer=ProbeAnswer,
        status=201,
        problems=(409,),
        keeps_memories=True,
        needs=Access.HOME,
    )
)
def begin_probe(call: Call) -> ProbeAnswer:
    """Start a probe of hooks."""
    return ProbeAnswer(id=call.container.probes.begin(), problem=find_write_problem(call.workspace))


@api.route(
    Endpoint(
        "DELETE",
        "/v1/hook-probes/{probe_id}",
        answer=ProbeReportAnswer,
        problems=(404,),
        keeps_memories=True,
        needs=Access.HOME,
    )
)
def end_probe(call: Call, query: ProbeQuery, probe_id: str) -> ProbeReport:
    """End a probe, and return what arrived."""
    scratch = call.container.probes.wait_for_users(probe_id)
    try:
        workspaces = [scratch.workspace(name) for name in scratch.databases.ids()]
        runs = scratch.agents.hook_runs.page(MOST_RUNS, None).items
        return report_probe(runs, workspaces, scratch.host_activity, query.host)
    finally:
        call.container.probes.end(probe_id)
