"""Names that mean the same, as memories define them."""

from pipeline.kernel.feature import HOUR, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "bridges",
    jobs=(
        ScheduledJob(
            "bridges",
            "finds names that memories define or users merged",
            Schedule(HOUR),
            load_job("pipeline.features.bridges.job", "mine_bridges"),
            place=45,
        ),
    ),
    extensions={
        "pipeline.features.bridges.store": ("TABLES",),
    },
    needs=("entities",),
)
