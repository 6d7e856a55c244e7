"""Lessons, and whether agents followed them."""

from pipeline.kernel.feature import NIGHTLY, TOPICS, Command, Feature, ScheduledJob, load_job

feature = Feature(
    "lessons",
    endpoints=("web.features.lessons.http",),
    commands=(Command("lessons", "web.features.lessons.commands", "Lessons and their effect", TOPICS, 5),),
    pages=("web.features.lessons.page",),
    tools=("web.features.lessons.tools",),
    jobs=(
        ScheduledJob(
            "lessons",
            "proposes lessons from repeated corrections and from failures and their fixes",
            NIGHTLY,
            load_job("pipeline.features.lessons.job", "lessons", lambda context: (context.model(),), writes=True),
            place=48,
        ),
    ),
    needs=("consolidation", "model"),
)
