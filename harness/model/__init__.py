"""What the harness is about: problems, candidates, settings and verdicts, and how the user's files say them."""
