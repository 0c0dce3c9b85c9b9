"""How the user's files are read: text, YAML with line numbers, Python without importing it, and guesses at spelling.

`problem`, `settings` and `candidate` above are what comes of it; everything here speaks in InputErrors.
"""
