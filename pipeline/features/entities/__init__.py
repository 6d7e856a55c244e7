"""The names that memories mention."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "entities",
    endpoints=("web.features.entities.http",),
    commands=(Command("graph", "web.features.entities.commands", "Entities and threads", TOPICS, 15),),
    pages=("web.features.entities.page",),
    tools=("web.features.entities.tools",),
    stages={"entities": "pipeline.features.entities.stage"},
    extensions={
        "pipeline.features.entities.store": ("TABLES",),
        "pipeline.features.entities.alias_store": ("TABLES",),
    },
    needs=("map",),
)
