"""Verified copies of the store."""

from pipeline.kernel.feature import DAY, NIGHTLY, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "snapshots",
    jobs=(
        ScheduledJob(
            "snapshot",
            "keeps a verified copy of the store: 7 daily, 4 weekly",
            NIGHTLY,
            load_job("pipeline.features.snapshots.people_job", "take_snapshots", lambda context: (context,)),
            place=5,
        ),
        ScheduledJob(
            "verify",
            "restores the newest snapshot into a scratch file and compares hashes",
            Schedule(30 * DAY),
            load_job(
                "pipeline.features.snapshots.verify_job",
                "verify_snapshot",
                lambda context: (context.paths.snapshots, context.on_problem),
            ),
            idle=30 * DAY,
            place=57,
        ),
    ),
    needs=("indexing", "maintenance"),
)
