"""Many machines at once, on Ray: a judge for each GPU of a cluster, builds on any node, and the same for programs.

Ray is imported only where a cluster is asked for. What runs on a node is this harness itself, installed there.
"""
