"""Importance that follows use, and the archive of unused memories."""

from pipeline.kernel.feature import ALWAYS, NIGHTLY, Feature, ScheduledJob, load_job

feature = Feature(
    "aging",
    jobs=(
        ScheduledJob(
            "decay",
            "lowers the importance of unused memories, raises it with use",
            NIGHTLY,
            load_job("pipeline.features.aging.job", "decay"),
            idle=ALWAYS,
            place=47,
        ),
        ScheduledJob(
            "archive",
            "archives old memories that are unused and unimportant",
            NIGHTLY,
            load_job("pipeline.features.aging.job", "archive"),
            idle=ALWAYS,
            place=47,
        ),
    ),
)
