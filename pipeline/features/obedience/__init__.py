"""Whether agents kept or broke the rules that they were shown."""

from pipeline.kernel.feature import Command, Feature

feature = Feature(
    "obedience",
    endpoints=("web.features.obedience.http",),
    commands=(Command("lessons report", "web.features.obedience.commands"),),
    pages=("web.features.obedience.page",),
    needs=("lessons",),
)
