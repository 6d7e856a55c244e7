"""Values that change over time, by subject and attribute."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "facts",
    endpoints=("web.features.facts.http",),
    commands=(Command("facts", "web.features.facts.commands", "Values that change", TOPICS, 5),),
    pages=("web.features.facts.page",),
    tools=("web.features.facts.tools",),
)
