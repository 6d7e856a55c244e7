from pipeline.kernel.errors import ReverieError


class DemoFailed(ReverieError):
    """Say why the demonstration could not go on, with the end of the stack's log where that explains it."""

    def __init__(self, message: str, log_tail: str = "") -> None:
        super().__init__(message)
        self.log_tail = log_tail
