"""Charts and other parts that panels are made of."""
