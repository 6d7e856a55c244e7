"""The review of candidates, possible duplicates, conflicts and automatic changes."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "review",
    endpoints=("web.features.review.http",),
    commands=(Command("review", "web.features.review.commands", "Memories to review", TOPICS, 15),),
    pages=("web.features.review.page",),
    tools=("web.features.review.tools",),
    extensions={
        "pipeline.features.review.store": ("TABLES",),
    },
    needs=("team",),
)
