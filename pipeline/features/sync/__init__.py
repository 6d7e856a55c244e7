"""The same memories on several machines."""

from pipeline.features.feature import TOPICS, Command, Feature

feature = Feature(
    "sync",
    endpoints=("web.api.changes",),
    commands=(Command("sync", "web.cli.sync", "Sync with other machines", TOPICS, 15),),
)
