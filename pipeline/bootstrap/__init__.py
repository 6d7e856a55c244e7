"""The composition root: the only place that wires settings, stores, indexes and stages together."""
