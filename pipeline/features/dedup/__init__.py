"""Memories that say the same are merged or kept for review."""

from pipeline.features.feature import MINUTE, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "dedup",
    stages={"dedup": "pipeline.digest.dedup"},
    jobs=(
        ScheduledJob(
            "dedup",
            "merges or clears possible duplicates",
            Schedule(10 * MINUTE),
            load_job("pipeline.jobs.mining.dedup", "dedup", lambda context: (context.ask_model("dedup"),)),
            place=41,
        ),
    ),
)
