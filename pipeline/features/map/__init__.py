"""The map of entities."""

from pipeline.kernel.feature import NIGHTLY, Feature, ScheduledJob, load_job

feature = Feature(
    "map",
    jobs=(
        ScheduledJob(
            "layout", "computes the map of entities", NIGHTLY, load_job("pipeline.features.map.job", "layout"), place=55
        ),
    ),
    extensions={
        "pipeline.features.map.store": ("TABLES",),
    },
)
