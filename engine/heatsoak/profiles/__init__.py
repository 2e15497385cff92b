"""What is known before measuring: cards and whatever else ships as YAML under `profiles/`."""
