"""The Huey queue, its tasks and the scheduler."""
