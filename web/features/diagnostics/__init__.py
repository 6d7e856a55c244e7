"""The entry points of the feature `diagnostics`."""
