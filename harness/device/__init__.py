"""What the device is, what it is doing, and the judge's half of the launches made on it.

`cuda` and `cpu` offer the judge the same backend. What it must do otherwise on one of them, and how far its clocks may
be trusted, is that backend's `device_limits`; nothing that judges asks which device it has.
"""
