"""Runs of tools: what a model was told by each call, noted where hooks note theirs."""

import logging
import re
import time
from collections.abc import Mapping

from pipeline.errors import ReverieError
from web.mcp.tool import Tool, ToolCall, ToolFailed, ToolResult, call_tool

MOST_IDS = 200
LONGEST_TEXT = 20_000
LONGEST_REASON = 500

log = logging.getLogger(__name__)


def call_recorded(tool: Tool, call: ToolCall) -> ToolResult:
    """Run a tool and note the call; raise ToolFailed for whatever went wrong."""
    began = time.perf_counter()
    try:
        answer = call_tool(tool, call)
    except ToolFailed as error:
        _note(tool, call, began, {"outcome": "failed", "reason": str(error)[:LONGEST_REASON]})
        raise
    told = {"outcome": "told", "text": answer.text[:LONGEST_TEXT], "memory_ids": list(answer.ids)[:MOST_IDS]}
    _note(tool, call, began, told)
    return answer


def _note(tool: Tool, call: ToolCall, began: float, told: Mapping[str, object]) -> None:
    host = re.sub(r"[^\w.:-]+", "-", call.agent or "")[:100] or "unknown"
    run = {"event": f"mcp:{tool.name}", "host": host, "took_ms": (time.perf_counter() - began) * 1000, **told}
    try:
        call.server.call("POST", "/v1/hook-runs", run | call.own_session())
    except ReverieError as error:
        # The model has its answer; that it was told is all that is not known.
        log.info("the call of %s was not noted: %s", tool.name, error)
