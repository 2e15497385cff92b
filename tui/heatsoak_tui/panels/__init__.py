"""One file a panel; panels do not know each other."""
