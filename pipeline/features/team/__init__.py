"""The connection to a server of a team."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "team",
    commands=(Command("team", "web.features.team.commands", "Memory shared by a team", TOPICS, 15),),
)
