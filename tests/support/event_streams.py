"""Server-sent events as a test reads them."""

import http.client


def read_fields(response: http.client.HTTPResponse) -> dict[str, str] | None:
    """Return the fields of the next block of a stream, None at its end."""
    fields = {}
    while line := response.readline().decode().rstrip("\n"):
        name, _, value = line.partition(": ")
        fields[name] = value
    return None if not fields and response.isclosed() else fields
