"""Every page of the dashboard, by the path that leads to it."""

from urllib.parse import quote

from tests.fakes.dashboard import Site
from web.dashboard.blueprint import NAVIGATION

# A list's path is the first part of its endpoint's, but for the page that every other starts from.
LISTS = tuple(f"/{entry.endpoint.partition('_')[0]}".replace("/overview", "/") for entry in NAVIGATION)


def records(site: Site, workspace: str = "default") -> list[str]:
    """Return paths of the pages that show one thing: a memory, an entity, an arc, a fact."""
    start = f"/w/{workspace}"

    def first(path: str) -> dict:
        return site.client.get(path, workspace=workspace).get_json()["items"][0]

    return [
        f"{start}/memories/{first('/v1/memories')['id']}",
        f"{start}/entities/{first('/v1/entities')['id']}",
        f"{start}/arcs/{first('/v1/arcs')['id']}",
        f"{start}/lessons/{first('/v1/lessons')['id']}",
        f"{start}/goals/{first('/v1/goals')['id']}",
        f"{start}/sessions/{quote(first('/v1/sessions')['id'], safe='')}",
        f"{start}/sessions?q=port",
        f"{start}/facts/of?subject=staging+database",
        f"{start}/facts/one?subject=staging+database&attribute=port",
        f"{start}/recall?q=which+port+does+staging+use&compare=1&b_only=lexical&why=SMS",
        f"{start}/settings/token",
    ]


def list_pages(site: Site, workspace: str = "default") -> list[str]:
    """Return the paths of all pages in a workspace."""
    return [f"/w/{workspace}{path}" for path in LISTS] + records(site, workspace)
