"""The derived indexes and the embedding model: the stages and jobs that keep them complete."""

from pipeline.kernel.feature import ADMINISTRATION, Command, Feature

feature = Feature(
    "indexing",
    commands=(Command("model", "web.features.configuration.commands", "Embedding model", ADMINISTRATION, 15),),
)
