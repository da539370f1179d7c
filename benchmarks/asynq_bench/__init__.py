"""The parts of ``bench_asynq.py``: ours against the real Go Asynq, and other Python queues, on one Redis."""
