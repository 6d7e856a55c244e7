"""The connection to a server of a team."""

from pipeline.features.feature import TOPICS, Command, Feature

feature = Feature(
    "team",
    commands=(Command("team", "web.cli.team", "Memory shared by a team", TOPICS, 15),),
)
