"""Searching a candidate's `PARAMETERS`: every trial is a candidate of its own and goes through the whole judge."""
