"""The same FedMF written for other frameworks, one script each, run by `benchmarks.peers` in environments of their own.

No script imports ownview: each reads a problem (`problem.npz`), trains, and writes tables and CPU-seconds.
"""
