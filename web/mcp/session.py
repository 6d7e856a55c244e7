"""The session of one host over stdio: what it is answered without the server, and the lists that it knows."""

import base64
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from web.mcp.greeting import (
    ACKNOWLEDGED,
    AFTER_HANDSHAKE,
    ENVELOPE,
    LISTEN,
    LISTS,
    RELAYED,
    SUBSCRIPTION_ID,
    TOOLS_CHANGED,
    Request,
    check_envelope,
    choose_instructions,
    discover,
    refuse_method,
    refuse_parameters,
    shake_hands,
    sign_list,
)

if TYPE_CHECKING:
    from web.mcp.offered_tools import Switches
    from web.mcp.tool import Tool

# The parameter that names what a request of a newer version is about. HTTP repeats it in a header.
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_HEADER_TEXT = re.compile(r"(?!=\?base64\?)[!-~]([ -~]*[!-~])?")


class Session:
    """Answers the requests of a host that need no server. Several threads may use one object."""

    def __init__(self, profile: str, find_switches: "Callable[[], Switches]") -> None:
        self.profile = profile
        self._instructions = choose_instructions(profile)
        self._find_switches = find_switches
        self._client: dict[str, str] = {}
        self._version: str | None = None
        self._has_all_tools = False
        self._listed: tuple[Tool, ...] | None = None
        # The streams of newer versions, by the id of their request, and whether they announce changed tools.
        self._streams: dict[str | int, bool] = {}
        self._lock = threading.Lock()

    def find_client(self, request: Request) -> str:
        """Return the name of the host, "" if it has none."""
        client = self._client if request.envelope is None else request.envelope.get(f"{ENVELOPE}clientInfo")
        name = client.get("name") if isinstance(client, dict) else None
        return name.strip()[:256] if isinstance(name, str) else ""

    def answer(self, request: Request) -> dict[str, Any] | None:
        """Return the answer to a request, None for one that only the server can answer."""
        envelope = request.envelope
        if envelope is not None:
            return check_envelope(request, envelope) or self._answer_modern(request)
        if request.method == "initialize":
            return self._shake_hands(request)
        if request.method == "ping":
            return request.answer({})
        if self._version is None and request.method in AFTER_HANDSHAKE:
            return refuse_parameters(request)
        if request.method in LISTS:
            return request.answer(self._list(request.method))
        return None if request.method in RELAYED else refuse_method(request)

    def _shake_hands(self, request: Request) -> dict[str, Any]:
        answer = shake_hands(request, self._instructions)
        if "result" in answer:
            self._version = answer["result"]["protocolVersion"]
            self._client = request.params["clientInfo"]
        return answer

    def _answer_modern(self, request: Request) -> dict[str, Any] | None:
        if request.method == "server/discover":
            return discover(request, self._instructions)
        if request.method in LISTS:
            return request.answer(self._list(request.method) | sign_list())
        if request.method == LISTEN:
            return self._open_stream(request)
        return None if request.method in RELAYED else refuse_method(request)

    def _open_stream(self, request: Request) -> dict[str, Any]:
        """Acknowledge a stream of notifications. Claude Code 2.1.332 asks for no list before."""
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            return refuse_parameters(request)
        announced = {TOOLS_CHANGED: True} if wanted.get(TOOLS_CHANGED) is True else {}
        with self._lock:
            self._streams[request.id] = bool(announced)
        params = {"_meta": {SUBSCRIPTION_ID: request.id}, "notifications": announced}
        return {"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}

    def close_stream(self, request_id: Any) -> None:
        """Send no more notifications on a stream that the host cancelled."""
        with self._lock:
            self._streams = {stream: announces for stream, announces in self._streams.items() if stream != request_id}

    def _list(self, method: str) -> dict[str, Any]:
        # Imported after the answer to the handshake, which the host waits for.
        from web.mcp.offered_tools import build_catalog

        if method != "tools/list":
            return build_catalog((), is_enabled=self._find_switches().is_enabled)[method]
        tools = self._offer()
        with self._lock:
            self._listed = tools
        return build_catalog(tools)[method]

    def _offer(self) -> "tuple[Tool, ...]":
        """Return the tools to list now."""
        from web.mcp.full_tools import PROFILES
        from web.mcp.offered_tools import offer_tools

        tools = (*PROFILES[self.profile], *self._more()) if self._has_all_tools else PROFILES[self.profile]
        return offer_tools(tools, self._find_switches())

    def _more(self) -> "tuple[Tool, ...]":
        """Return the tools that can be called, and that are listed after a call of `more_tools`."""
        from web.mcp.full_tools import REVEALED

        return REVEALED if self.profile == "core" else ()

    def find_tool(self, name: Any) -> "Tool | None":
        """Return a tool that the session may call; the server explains why it offers no other."""
        from web.mcp.full_tools import PROFILES
        from web.mcp.offered_tools import offer_tools

        tools = offer_tools((*PROFILES[self.profile], *self._more()), self._find_switches())
        return next((tool for tool in tools if tool.name == name), None)

    def note_call(self, name: Any) -> list[dict[str, Any]]:
        """Note that a tool was run; return notifications if the tools differ from those that were listed last.

        Each change is announced once.
        """
        from web.mcp.offered_tools import MORE_TOOLS

        self._has_all_tools = self._has_all_tools or (name == MORE_TOOLS.name and bool(self._more()))
        tools = self._offer()
        with self._lock:
            if self._listed in (None, tools):
                return []
            self._listed = tools
            streams = [stream for stream, announces in self._streams.items() if announces]
        metas = [{"params": {"_meta": {SUBSCRIPTION_ID: stream}}} for stream in streams]
        if self._version is not None:
            metas.append({})
        return [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", **meta} for meta in metas]

    def describe(self, request: Request) -> dict[str, str]:
        """Return the headers with which a request goes to the server: version, host, and what it is about."""
        envelope = request.envelope
        if envelope is None:
            version = {} if self._version is None else {"MCP-Protocol-Version": self._version}
            client = self.find_client(request)
            return version | ({"User-Agent": quote(client, safe="")} if client else {})
        headers = {"MCP-Protocol-Version": envelope[f"{ENVELOPE}protocolVersion"], "Mcp-Method": request.method}
        name = request.params.get(NAMES[request.method])
        return headers | ({"Mcp-Name": _encode_header(name)} if isinstance(name, str) else {})


def _encode_header(text: str) -> str:
    """Return a text as the protocol puts it into a header."""
    return text if _HEADER_TEXT.fullmatch(text) else f"=?base64?{base64.b64encode(text.encode()).decode()}?="
