"""The trusted parent: it draws inputs, computes truths, compares on the device, keeps the rounds and decides.

What stands here never enters a player's process: seeds, expected values, bounds and verdicts.
"""
