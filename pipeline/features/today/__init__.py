"""What a day changed."""

from pipeline.kernel.feature import EVERYDAY, Command, Feature

feature = Feature(
    "today",
    endpoints=("web.features.today.http",),
    commands=(Command("today", "web.features.today.commands", "What changed today", EVERYDAY, 105),),
)
