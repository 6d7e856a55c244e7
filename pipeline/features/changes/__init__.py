"""Events for programs that follow the memory."""

from pipeline.features.feature import EVERYDAY, Command, Feature

feature = Feature(
    "changes",
    endpoints=("web.api.events",),
    commands=(Command("tail", "web.cli.live", "Print events as they happen", EVERYDAY, 105),),
)
