"""Accounts, roles and the access log of a shared server."""

from pipeline.features.feature import ADMINISTRATION, Command, Feature

feature = Feature(
    "people",
    endpoints=("web.api.people",),
    commands=(Command("user", "web.cli.users", "Accounts and roles", ADMINISTRATION, 25),),
)
