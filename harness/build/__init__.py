"""From a candidate's source to compiled extensions: toolchain, parallel builders, cache, the compiler's report.

Candidates are imported only by `builder`, an untrusted child without a GPU behind the sandbox; what another such child
compiles for it, and runs nothing of, is hashed and kept by `cache`. Loading and running it is left to `worker`.
"""
