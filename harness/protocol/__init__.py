"""What crosses the wall between referee and player: frames, slots of raw memory, and the flags that order them.

Both sides import this package, and the player nothing else of the harness but `clocks`.
"""
