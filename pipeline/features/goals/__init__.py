"""Goals with their status, progress and due date."""

from pipeline.features.feature import TOPICS, Command, Feature

feature = Feature(
    "goals",
    endpoints=("web.api.goals",),
    commands=(Command("goals", "web.features.goals.commands", "Goals and their progress", TOPICS, 5),),
    pages=("web.dashboard.pages.goals",),
    tools=("web.features.goals.tools",),
    extensions={
        "pipeline.store.goals": ("list_unfinished", "list_likely_questions", "IS_KEPT"),
        "pipeline.features.goals.details": ("DETAILS",),
        "web.api.goals": ("UnfinishedAnswer",),
    },
)
