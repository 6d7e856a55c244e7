"""Read aider's chats: a Markdown file in each repository for all of its sessions."""

import re

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
