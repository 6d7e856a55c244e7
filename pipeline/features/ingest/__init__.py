"""Projects, commits, documents and exports of other tools as memories."""

from pipeline.kernel.feature import EVERYDAY, Command, Feature

feature = Feature(
    "ingest",
    endpoints=("web.features.ingest.http",),
    commands=(
        Command("import", "web.features.ingest.commands", "Import from other tools", EVERYDAY, 155),
        Command("index", "web.features.ingest.commands", "Index project, Git or PDF", EVERYDAY, 155),
    ),
    tools=("web.features.ingest.tools",),
    needs=("workspaces",),
)
