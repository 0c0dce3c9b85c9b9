"""What a person sees while a run works, and how its numbers are written for the terminal."""
