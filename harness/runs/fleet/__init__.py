"""Several GPUs of one machine at once: a judge process for each, a parent that shares out the candidates and gathers
the records. Below one process everything is as on a single GPU.
"""
