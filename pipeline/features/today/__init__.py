"""What a day changed."""

from pipeline.features.feature import EVERYDAY, Command, Feature

feature = Feature(
    "today",
    endpoints=("web.features.today.http",),
    commands=(Command("today", "web.cli.today", "What changed today", EVERYDAY, 105),),
)
