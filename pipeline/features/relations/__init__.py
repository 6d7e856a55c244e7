"""Relations between memories: causes, contradictions and supersessions."""

from pipeline.kernel.feature import MINUTE, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "relations",
    jobs=(
        ScheduledJob(
            "edges",
            "finds causes, contradictions and supersessions between recent memories",
            Schedule(10 * MINUTE),
            load_job("pipeline.features.relations.job", "edges", lambda context: (context.vectors,)),
            place=42,
        ),
    ),
)
