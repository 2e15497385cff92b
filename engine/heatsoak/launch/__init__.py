"""What can be trained, and the child processes that train it."""
