"""The names that memories mention, and the relations between memories."""

from pipeline.features.feature import MINUTE, TOPICS, Command, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "entities",
    endpoints=("web.api.graph",),
    commands=(Command("graph", "web.cli.graph", "Entities and threads", TOPICS, 15),),
    pages=("web.dashboard.pages.entities",),
    tools=("web.features.entities.tools",),
    stages={"entities": "pipeline.digest.entities"},
    jobs=(
        ScheduledJob(
            "edges",
            "finds causes, contradictions and supersessions between recent memories",
            Schedule(10 * MINUTE),
            load_job("pipeline.jobs.mining.edges", "edges", lambda context: (context.vectors,)),
            place=42,
        ),
    ),
    extensions={
        "pipeline.store.entities": ("TABLES",),
        "pipeline.store.entity_aliases": ("TABLES",),
    },
)
