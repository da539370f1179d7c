"""The pieces of ``bench_import.py``."""
