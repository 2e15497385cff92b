"""Logs of other tools and of heatsoak's own plain form, one file a form."""
