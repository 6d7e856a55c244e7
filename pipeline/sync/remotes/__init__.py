"""Where operations travel by: a folder, S3-compatible storage, or another Reverie."""
