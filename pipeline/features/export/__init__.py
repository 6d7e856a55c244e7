"""Memories as files in open formats."""

from pipeline.features.feature import EVERYDAY, Command, Feature

feature = Feature(
    "export",
    commands=(Command("export", "web.cli.export", "Write memories to files", EVERYDAY, 155),),
)
