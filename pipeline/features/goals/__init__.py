"""Goals with their status, progress and due date."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "goals",
    endpoints=("web.features.goals.http",),
    commands=(Command("goals", "web.features.goals.commands", "Goals and their progress", TOPICS, 5),),
    pages=("web.features.goals.page",),
    tools=("web.features.goals.tools",),
    extensions={
        "pipeline.kernel.store.goals": ("list_unfinished", "list_likely_questions", "IS_KEPT"),
        "pipeline.features.goals.details": ("DETAILS",),
        "web.features.goals.http": ("UnfinishedAnswer",),
    },
)
