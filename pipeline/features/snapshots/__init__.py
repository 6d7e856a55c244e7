"""Verified copies of the store."""

from pipeline.features.feature import NIGHTLY, Feature, ScheduledJob, load_job

feature = Feature(
    "snapshots",
    jobs=(
        ScheduledJob(
            "snapshot",
            "keeps a verified copy of the store: 7 daily, 4 weekly",
            NIGHTLY,
            load_job("pipeline.jobs.people_snapshot", "take_snapshots", lambda context: (context,)),
            place=5,
        ),
    ),
)
