"""The encryption of the store at rest. Its commands belong to the group `store`."""

from pipeline.kernel.feature import Feature

feature = Feature("encryption")
