"""The embedding model."""

from pipeline.kernel.feature import ADMINISTRATION, Command, Feature

feature = Feature(
    "model",
    commands=(Command("model", "web.features.configuration.commands", "Embedding model", ADMINISTRATION, 15),),
)
