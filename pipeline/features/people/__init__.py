"""Accounts, roles and the access log of a shared server."""

from pipeline.kernel.feature import ADMINISTRATION, Command, Feature

feature = Feature(
    "people",
    endpoints=("web.features.people.http",),
    commands=(Command("user", "web.features.people.commands", "Accounts and roles", ADMINISTRATION, 25),),
)
