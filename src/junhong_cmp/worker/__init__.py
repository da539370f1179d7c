"""One worker process: its role, its modules, their start and their stop."""
