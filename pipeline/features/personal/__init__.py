"""Memories about the user, which apply in every workspace."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "personal",
    commands=(Command("me", "web.features.personal.commands", "Memories about you", TOPICS, 15),),
    pages=("web.features.personal.page",),
)
