"""The embedding model."""

from pipeline.features.feature import ADMINISTRATION, Command, Feature

feature = Feature(
    "model",
    commands=(Command("model", "web.cli.settings", "Embedding model", ADMINISTRATION, 15),),
)
