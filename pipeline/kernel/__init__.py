"""The parts that every feature uses: records, errors, the store, git, the handle of a workspace."""
