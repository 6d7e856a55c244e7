"""Memories that say the same are merged or kept for review."""

from pipeline.kernel.feature import MINUTE, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "dedup",
    stages={"dedup": "pipeline.features.dedup.stage"},
    jobs=(
        ScheduledJob(
            "dedup",
            "merges or clears possible duplicates",
            Schedule(10 * MINUTE),
            load_job("pipeline.features.dedup.job", "dedup", lambda context: (context.ask_model("dedup"),)),
            place=41,
        ),
    ),
    needs=("model",),
)
