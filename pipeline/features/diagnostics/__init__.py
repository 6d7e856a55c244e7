"""The state of the store, the indexes and the installation."""

from pipeline.kernel.feature import DAY, EVERYDAY, HOUR, Command, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "diagnostics",
    commands=(Command("doctor", "web.features.diagnostics.commands", "Find and fix problems", EVERYDAY, 35),),
    jobs=(
        ScheduledJob(
            "health",
            "checks store and indexes, repairs derived data",
            Schedule(HOUR),
            load_job(
                "pipeline.features.diagnostics.job",
                "health",
                lambda context: (context.paths, context.repair_vectors, context.on_problem, context.segments),
            ),
            idle=DAY,
            place=55,
        ),
    ),
    needs=("encryption", "entities", "indexing", "maintenance", "snapshots", "workspaces"),
)
