"""The parts of ``bench_poll.py``: one consumer process from the task queue to the write-back."""
