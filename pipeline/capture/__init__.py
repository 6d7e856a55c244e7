"""Capture: what people say that lasts, proposed as memories."""
