"""How launches are made on a device: what of its memory they may hold at once."""
