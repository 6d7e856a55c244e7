"""What memories cite, compared with the repository."""

from pipeline.features.feature import EVERYDAY, HOUR, Command, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "citations",
    commands=(Command("check", "web.cli.check", "Check cited code", EVERYDAY, 155),),
    jobs=(
        ScheduledJob(
            "check",
            "compares what memories cite with the repository",
            Schedule(HOUR),
            load_job("pipeline.jobs.check", "check"),
            place=46,
        ),
    ),
    extensions={"pipeline.store.broken_citations": ("TABLES", "read_broken")},
)
