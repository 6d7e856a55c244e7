"""Projects, commits, documents and exports of other tools as memories."""

from pipeline.features.feature import EVERYDAY, Command, Feature

feature = Feature(
    "ingest",
    endpoints=("web.api.sources",),
    commands=(
        Command("import", "web.cli.ingest", "Import from other tools", EVERYDAY, 155),
        Command("index", "web.cli.ingest", "Index project, Git or PDF", EVERYDAY, 155),
    ),
    tools=("web.features.ingest.tools",),
)
