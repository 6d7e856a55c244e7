"""What waits for a person: candidates, possible duplicates, conflicts, automatic changes."""

from pipeline.features.feature import TOPICS, Command, Feature

feature = Feature(
    "review",
    endpoints=("web.api.review",),
    commands=(Command("review", "web.cli.review", "Memories to review", TOPICS, 15),),
    pages=("web.dashboard.pages.inbox",),
    tools=("web.features.review.tools",),
    extensions={
        "pipeline.store.review": ("TABLES",),
    },
)
