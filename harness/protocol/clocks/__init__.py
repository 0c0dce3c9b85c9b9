"""Stopwatches and the cold cache that goes before them; used alike by the worker and by the judge's own arm.

Everything that the timed loop calls is bound to a name of ours when these modules are imported, which is before
any candidate is: patching `torch.cuda.Event` or `time` later changes nothing here.
"""
