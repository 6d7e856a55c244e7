"""Threads: memories that belong to one story."""

from pipeline.kernel.feature import HOUR, Command, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "arcs",
    endpoints=("web.features.arcs.http",),
    commands=(Command("graph arcs", "web.features.arcs.commands"),),
    pages=("web.features.arcs.page",),
    tools=("web.features.arcs.tools",),
    jobs=(
        ScheduledJob(
            "arcs",
            "groups memories into threads",
            Schedule(HOUR),
            load_job("pipeline.features.arcs.job", "arcs", lambda context: (context.vectors,)),
            place=43,
        ),
    ),
    extensions={
        "pipeline.features.arcs.store": (
            "list_threads",
            "list_threads_of",
            "list_threads_with",
            "TABLES",
            "list_derived_texts",
        ),
        "pipeline.features.arcs.usecases": ("list_likely_questions", "IS_KEPT"),
        "web.features.arcs.http": ("ThreadAnswer",),
    },
    needs=("entities",),
)
