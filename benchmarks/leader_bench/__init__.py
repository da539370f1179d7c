"""The parts of ``bench_leader.py``: what the deciding side does with a million cards."""
