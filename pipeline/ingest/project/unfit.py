"""Why a file is left out."""


class Unfit(Exception):
    """Say in a few plain words why a file becomes no memory."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
