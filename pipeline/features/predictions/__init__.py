"""Likely questions, answered before they are asked."""

from pipeline.kernel.feature import DAY, HOUR, Feature, Schedule, ScheduledJob, load_job

feature = Feature(
    "predictions",
    jobs=(
        ScheduledJob(
            "predict",
            "predicts the next questions and answers them",
            Schedule(HOUR),
            load_job("pipeline.features.predictions.job", "predict_and_answer", lambda context: (context.open_search,)),
            idle=DAY,
            place=44,
        ),
    ),
    extensions={
        "pipeline.features.predictions.store": ("TABLES",),
    },
)
