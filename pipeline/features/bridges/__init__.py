"""Names that mean the same, as memories define them."""

from pipeline.features.feature import HOUR, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "bridges",
    jobs=(
        ScheduledJob(
            "bridges",
            "finds names that memories define or users merged",
            Schedule(HOUR),
            load_job("pipeline.jobs.mining.bridges", "mine_bridges"),
            place=45,
        ),
    ),
    extensions={
        "pipeline.store.bridges": ("TABLES",),
    },
)
