"""Memories from what a person says to an agent."""

from pipeline.kernel.feature import Feature

feature = Feature(
    "capture",
    stages={"capture": "pipeline.features.capture.stage"},
    needs=("consolidation", "lessons", "model", "relations"),
)
