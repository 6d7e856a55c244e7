"""Read aider's chats: a Markdown file in each repository for all of its sessions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from pipeline.store.turns import Role
from pipeline.times import utc_text
from pipeline.transcripts.documents import describe_file, list_folder
from pipeline.transcripts.log_lines import format_mark, iterate_lines, parse_mark
from pipeline.transcripts.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.transcripts.session_log import LeftOut, SessionLog
from pipeline.transcripts.tool_names import record_call, record_result

_AGENT = "aider"
_HISTORY = ".aider.chat.history.md"
_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_EDITED = re.compile(r"Applied edit to (.+)")
_CREATED = re.compile(r"Creating empty file (.+)")
_RUN = re.compile(r"/(?:run|test|git) (.+)|!(.+)")
_COMMITTED = re.compile(r"Commit [0-9a-f]{6,40} (.+)")
# Folders in which repositories usually are, below the user's home.
_DEPTH = 4
_MOST_FOLDERS = 20_000
