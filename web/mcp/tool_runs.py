"""Runs of tools: the text that each call showed to a model, recorded with the runs of hooks."""

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
    """Run a tool and record the call; raise ToolFailed for any error."""
    began = time.perf_counter()
    try:
        answer = call_tool(tool, call)
    except ToolFailed as error:
        _note(tool, call, began, {"outcome": "failed", "reason": str(error)[:LONGEST_REASON]})
        raise
    result = {"outcome": "told", "text": answer.text[:LONGEST_TEXT], "memory_ids": list(answer.ids)[:MOST_IDS]}
    _note(tool, call, began, result)
    return answer


def _note(tool: Tool, call: ToolCall, began: float, result: Mapping[str, object]) -> None:
    host = re.sub(r"[^\w.:-]+", "-", call.agent or "")[:100] or "unknown"
    run = {"event": f"mcp:{tool.name}", "host": host, "took_ms": (time.perf_counter() - began) * 1000, **result}
    try:
        call.server.call("POST", "/v1/hook-runs", run | call.own_session())
    except ReverieError as error:
        # The model still gets its answer; only the record of it is missing.
        log.info("the call of %s was not recorded: %s", tool.name, error)
