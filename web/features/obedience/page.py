"""The page that reports whether agents kept the rules."""

from pipeline.features.obedience import usecases as obedience
from pipeline.features.obedience.usecases import Proposal
from web.dashboard.view import PAGE_SIZE, Section, View, show

section = Section("obedience")

# The latest acts that are listed for each rule.
ACTS_SHOWN = 5


@section.page("/lessons/report")
def report(view: View) -> str:
    """Report for each rule which acts kept or broke it."""
    reports = obedience.report_rules(view.workspace, view.workspace.onlooker, PAGE_SIZE)
    acts = {
        report.memory.seq: [(use, made) for use in report.uses for made in use.acts][:ACTS_SHOWN] for report in reports
    }
    return show("lessons_report.html", view, title="Report on rules", reports=reports, acts=acts, proposals=Proposal)
