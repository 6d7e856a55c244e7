"""Workspaces and the folders that belong to them."""

from pipeline.kernel.feature import TOPICS, Command, Feature

feature = Feature(
    "workspaces",
    commands=(Command("workspace", "web.features.workspaces.commands", "Manage workspaces", TOPICS, 15),),
    needs=("export", "snapshots"),
)
