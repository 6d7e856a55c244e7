"""Values that change over time, by subject and attribute."""

from pipeline.features.feature import TOPICS, Command, Feature

feature = Feature(
    "facts",
    endpoints=("web.api.facts",),
    commands=(Command("facts", "web.features.facts.commands", "Values that change", TOPICS, 5),),
    pages=("web.dashboard.pages.facts",),
    tools=("web.features.facts.tools",),
)
