"""The map of entities."""

from pipeline.features.feature import NIGHTLY, Feature, ScheduledJob, load_job

feature = Feature(
    "map",
    tables=("entity_place", "map_tie"),
    jobs=(
        ScheduledJob(
            "layout", "computes the map of entities", NIGHTLY, load_job("pipeline.jobs.map.layout", "layout"), place=55
        ),
    ),
)
