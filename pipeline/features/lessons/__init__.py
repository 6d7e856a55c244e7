"""Lessons, and whether agents followed them."""

from pipeline.features.feature import NIGHTLY, TOPICS, Command, Feature, ScheduledJob, load_job

feature = Feature(
    "lessons",
    endpoints=("web.api.lessons",),
    commands=(Command("lessons", "web.features.lessons.commands", "Lessons and their effect", TOPICS, 5),),
    pages=("web.dashboard.pages.lessons",),
    tools=("web.features.lessons.tools",),
    jobs=(
        ScheduledJob(
            "lessons",
            "proposes lessons from repeated corrections and from failures and their fixes",
            NIGHTLY,
            load_job("pipeline.jobs.mining.lessons", "lessons", lambda context: (context.model(),), writes=True),
            place=48,
        ),
    ),
)
