"""The map of entities."""

from pipeline.features.feature import NIGHTLY, Feature, ScheduledJob, load_job

feature = Feature(
    "map",
    jobs=(
        ScheduledJob(
            "layout", "computes the map of entities", NIGHTLY, load_job("pipeline.jobs.map.layout", "layout"), place=55
        ),
    ),
    extensions={
        "pipeline.store.maps": ("TABLES",),
    },
)
