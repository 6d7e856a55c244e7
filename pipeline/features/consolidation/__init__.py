"""Memories derived from others: summaries of episodes, causes of decisions."""

from pipeline.kernel.feature import ADMINISTRATION, NIGHTLY, Command, Feature, ScheduledJob, load_job

feature = Feature(
    "consolidation",
    commands=(Command("consolidate", "web.features.maintenance.commands", "Run the job consolidate", ADMINISTRATION),),
    jobs=(
        ScheduledJob(
            "consolidate",
            "summarizes related episodes in one memory",
            NIGHTLY,
            load_job(
                "pipeline.features.consolidation.job",
                "consolidate",
                lambda context: (context.table, context.model()),
                writes=True,
            ),
            place=47,
        ),
        ScheduledJob(
            "reflect",
            "links decisions to their causes and outcomes in a session",
            NIGHTLY,
            load_job(
                "pipeline.features.consolidation.reflect_job",
                "reflect",
                lambda context: (context.model(),),
                writes=True,
            ),
            place=49,
        ),
    ),
    needs=("model", "review"),
)
