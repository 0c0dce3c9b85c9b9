"""What `forged_by_a_module_cpu` imports: all time of the profiled launch was in its extension."""

import sys

if "harness.worker.loop" in sys.modules:
    channel = sys.modules["harness.protocol.frames"].Channel
    true_send = channel.send

    def send(self, frame, *args):
        listing = frame.get("profiled")
        if listing:
            listing.update(own_us=listing["total_us"], operators=[])
        true_send(self, frame, *args)

    channel.send = send
