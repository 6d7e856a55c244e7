"""Memories as files in open formats."""

from pipeline.kernel.feature import EVERYDAY, Command, Feature

feature = Feature(
    "export",
    commands=(Command("export", "web.features.export.commands", "Write memories to files", EVERYDAY, 155),),
    needs=("ingest", "sync"),
)
