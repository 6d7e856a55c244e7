"""Citations of code in memories, compared with the repository."""

from pipeline.kernel.feature import EVERYDAY, HOUR, Command, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "citations",
    commands=(Command("check", "web.features.citations.commands", "Check cited code", EVERYDAY, 155),),
    jobs=(
        ScheduledJob(
            "check",
            "compares what memories cite with the repository",
            Schedule(HOUR),
            load_job("pipeline.features.citations.job", "check"),
            place=46,
        ),
    ),
    extensions={"pipeline.features.citations.store": ("TABLES", "read_broken")},
)
