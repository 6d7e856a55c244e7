"""What every feature stands on: records, errors, the store, git, the handle of a workspace."""
