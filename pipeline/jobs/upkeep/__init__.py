"""What keeps a workspace whole: snapshots, indexes, checks, and the release of what dead processes hold."""
