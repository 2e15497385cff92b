"""The process that owns a run: sampler, children, judge, session file; and its control."""
