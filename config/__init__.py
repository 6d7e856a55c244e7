"""Settings, paths, logging and process plumbing; imports nothing else of Reverie."""
