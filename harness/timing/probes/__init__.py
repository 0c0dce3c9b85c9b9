"""Segments that count for no ratio and look like any other to the worker: which cheat each would show, and when."""
