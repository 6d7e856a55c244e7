"""The id of a memory that a client chooses, so that it may repeat a write."""

import time
from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from pydantic_core import PydanticCustomError
from ulid import ULID

# The clock of a client may be ahead of the server's.
CLOCK_TOLERANCE_S = 300


def _not_in_the_future(ulid: str) -> str:
    if ULID.from_str(ulid).timestamp > time.time() + CLOCK_TOLERANCE_S:
        raise PydanticCustomError("future", "must not be from the future")
    return ulid


ClientId = Annotated[
    str, StringConstraints(pattern=r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"), AfterValidator(_not_in_the_future)
]
