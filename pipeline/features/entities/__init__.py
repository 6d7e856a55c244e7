"""The names that memories mention, and the relations between memories."""

from pipeline.kernel.feature import MINUTE, TOPICS, Command, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "entities",
    endpoints=("web.features.entities.http",),
    commands=(Command("graph", "web.features.entities.commands", "Entities and threads", TOPICS, 15),),
    pages=("web.features.entities.page",),
    tools=("web.features.entities.tools",),
    stages={"entities": "pipeline.features.entities.stage"},
    jobs=(
        ScheduledJob(
            "edges",
            "finds causes, contradictions and supersessions between recent memories",
            Schedule(10 * MINUTE),
            load_job("pipeline.features.relations.job", "edges", lambda context: (context.vectors,)),
            place=42,
        ),
    ),
    extensions={
        "pipeline.features.entities.store": ("TABLES",),
        "pipeline.features.entities.alias_store": ("TABLES",),
    },
)
