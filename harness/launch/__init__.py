"""One worker from spawn to kill: how it is started, what is said to it, and what its words come to."""
