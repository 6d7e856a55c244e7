"""The Huey queue, its tasks and the clock: load, call, acknowledge."""
