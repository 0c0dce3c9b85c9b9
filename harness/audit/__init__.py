"""Whether a time may be believed: what another clock saw beside it, and what a source gives away of itself."""
