"""The details of a goal."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from pipeline.kernel.enums import GoalStatus, Kind
from pipeline.write.fields import Details, Moment


class GoalDetails(Details):
    """A goal's progress (0 to 1) and due date."""

    status: GoalStatus = GoalStatus.OPEN
    progress: Annotated[float, Field(ge=0, le=1)] = 0.0
    due_at: Moment | None = None


DETAILS: Mapping[Kind, type[Details]] = {Kind.GOAL: GoalDetails}
