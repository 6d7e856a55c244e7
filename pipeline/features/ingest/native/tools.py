"""The tools whose memories can be imported."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pipeline.features.ingest.native import databases, markdown_folders, text_blocks
from pipeline.features.ingest.native.databases import TABLES, read_tables
from pipeline.features.ingest.native.memory_stores import Tool
from pipeline.features.ingest.native.text_blocks import list_graph, read_parts
from pipeline.kernel.store.ingested import RULES_TOOL

# Rule files are last, because they are read for the projects of the other stores.
TOOLS: Final[Mapping[str, Tool]] = {
    "claude-code": Tool("Claude Code auto memory", markdown_folders.discover_claude_code, markdown_folders.read_notes),
    "codex": Tool(
        "Codex memories",
        text_blocks.discover_codex,
        partial(text_blocks.read_parts, list_entries=text_blocks.list_groups),
    ),
    "gemini": Tool("Gemini CLI memories", markdown_folders.discover_gemini, markdown_folders.read_gemini),
    "qwen": Tool("Qwen Code memories", markdown_folders.discover_qwen, markdown_folders.read_qwen),
    "goose": Tool("Goose memories", text_blocks.discover_goose, text_blocks.read_goose),
    "serena": Tool("Serena memories", markdown_folders.discover_serena, markdown_folders.read_documents),
    "cline": Tool("Cline memory bank", markdown_folders.discover_cline, markdown_folders.read_documents),
    "claude-mem": Tool("claude-mem", databases.discover_claude_mem, partial(read_tables, tables=TABLES["claude-mem"])),
    "basic-memory": Tool("basic-memory", markdown_folders.discover_basic_memory, markdown_folders.read_documents),
    "engram": Tool("engram", databases.discover_engram, partial(read_tables, tables=TABLES["engram"])),
    "memorix": Tool("memorix", databases.discover_memorix, partial(read_tables, tables=TABLES["memorix"])),
    "mcp-memory-service": Tool(
        "mcp-memory-service",
        databases.discover_mcp_memory_service,
        partial(read_tables, tables=TABLES["mcp-memory-service"]),
    ),
    "mcp-memory": Tool(
        "MCP memory server",
        text_blocks.discover_mcp_memory,
        partial(read_parts, list_entries=list_graph),
    ),
    "mempalace": Tool("MemPalace", databases.discover_mempalace, databases.read_mempalace),
    "mem0": Tool("mem0 and OpenMemory", databases.discover_mem0, databases.read_mem0),
    RULES_TOOL: Tool("rule files", markdown_folders.discover_rules, markdown_folders.read_rules),
}
