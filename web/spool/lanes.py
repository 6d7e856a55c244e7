"""Which spooled requests must keep their order, and which of them wait because an earlier one was refused."""

from collections.abc import Callable, Collection, Iterable

from config.paths import WORKSPACE_HEADER
from web.hooks.event_fields import unify_fields
from web.json_text import ReadObject
from web.spool.files import SpooledRequest
from web.spool.writes import list_items

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0


def find_lanes(request: SpooledRequest) -> frozenset[str]:
    """Return the sessions and the workspace in which a request must keep its order."""
    body = request.body if isinstance(request.body, dict) else {}
    if WORKSPACE_HEADER in request.headers and not request.path.startswith("/hooks/"):
        sessions = (item.get("session_id") for item in list_items(body))
        named = [f"session {session}" for session in sessions if session]
        return frozenset([f"workspace {request.headers[WORKSPACE_HEADER]}", *named])
    # The workspace of a hook event follows from its folder, which only the server looks up.
    fields = unify_fields(ReadObject(body)).fields
    session = fields.get("session_id")
    return frozenset([f"session {session}" if session else f"folder {fields.get('cwd')}"])


class Lanes:
    """The lanes whose first request was refused temporarily, each with a pause that doubles with every refusal."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # The end of the pause by the clock, and its length in seconds.
        self._pauses: dict[str, tuple[float, float]] = {}
        self._blocked: set[str] = set()

    def start_pass(self) -> None:
        """Start a pass over the spool: lanes whose pause is over may be tried again."""
        now = self._clock()
        self._blocked = {lane for lane, (ends_at, _) in self._pauses.items() if now < ends_at}

    def is_blocked(self, lanes: Iterable[str]) -> bool:
        """Return whether an earlier request of one of the lanes waits."""
        return not self._blocked.isdisjoint(lanes)

    def block(self, lanes: Iterable[str]) -> None:
        """Keep back later requests of the lanes in this pass: the request before them waits."""
        self._blocked.update(lanes)

    def pause(self, lanes: Collection[str]) -> float:
        """Keep back the requests of the lanes for a while, twice as long as the last time; return the seconds."""
        last_s = max((self._pauses[lane][1] for lane in lanes if lane in self._pauses), default=FIRST_PAUSE_S / 2)
        length_s = min(2 * last_s, LONGEST_PAUSE_S)
        for lane in lanes:
            self._pauses[lane] = self._clock() + length_s, length_s
        self.block(lanes)
        return length_s

    def resume(self, lanes: Iterable[str]) -> None:
        """Forget the pauses of lanes in which a request was delivered or moved aside."""
        for lane in lanes:
            self._pauses.pop(lane, None)
