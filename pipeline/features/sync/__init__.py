"""The same memories on several machines."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "sync",
    endpoints=("web.features.changes.http",),
    commands=(Command("sync", "web.features.sync.commands", "Sync with other machines", TOPICS, 15),),
)
