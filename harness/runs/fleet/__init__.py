"""Several GPUs of one machine at once: a judge process for each, and a parent that shares out the candidates."""
