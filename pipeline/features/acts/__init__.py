"""Memory at the act: what concerns an edit or a command, at the moment when an agent proposes it."""

from pipeline.kernel.feature import Feature

feature = Feature(
    "acts",
    extensions={"pipeline.features.acts.usecases": ("ActAdvisor",)},
    needs=("lessons", "obedience"),
)
