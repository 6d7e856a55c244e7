"""The pages that every page leads to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A page's name in the navigation, its endpoint, and the group that it stands in."""

    label: str
    endpoint: str
    group: str


NAVIGATION = (
    Entry("Overview", "overview_home", "Memory"),
    Entry("Timeline", "timeline_journal", "Memory"),
    Entry("Recall lab", "recall_lab", "Memory"),
    Entry("Map", "map_whole", "Memory"),
    Entry("Facts", "facts_subjects", "Knowledge"),
    Entry("Entities", "entities_list_all", "Knowledge"),
    Entry("Arcs", "arcs_list_all", "Knowledge"),
    Entry("Goals", "goals_list_all", "Knowledge"),
    Entry("Lessons", "lessons_list_all", "Knowledge"),
    Entry("Inbox", "inbox_review_entries", "Upkeep"),
    Entry("Workers", "workers_state", "Upkeep"),
    Entry("Settings", "settings_every", "Upkeep"),
)
