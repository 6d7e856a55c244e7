"""Events for programs that follow the memory."""

from pipeline.kernel.feature import EVERYDAY, Command, Feature

feature = Feature(
    "changes",
    endpoints=("web.features.changes.events",),
    commands=(Command("tail", "web.features.changes.commands", "Print events as they happen", EVERYDAY, 105),),
)
