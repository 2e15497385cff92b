"""The `heatsoak` command."""
