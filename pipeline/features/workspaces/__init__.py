"""Workspaces and the folders that belong to them."""

from pipeline.features.feature import TOPICS, Command, Feature

feature = Feature(
    "workspaces",
    commands=(Command("workspace", "web.cli.workspaces", "Manage workspaces", TOPICS, 15),),
)
