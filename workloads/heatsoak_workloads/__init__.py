"""Training workloads: one file each, run as child processes."""
