"""Memories from what a person says to an agent."""

from pipeline.features.feature import Feature

feature = Feature(
    "capture",
    stages={"capture": "pipeline.capture.stage"},
)
