"""Inputs that no candidate has seen: drawn from the operating system's entropy, transformed into families, packed."""
