"""The Asynq task queue for Python: same Redis keys, same messages, same meaning as ``hibiken/asynq`` v0.26.

Producers use :class:`~junhong_cmp.asynq.client.Client`, workers :class:`~junhong_cmp.asynq.server.Server`,
periodic jobs :class:`~junhong_cmp.asynq.scheduler.Scheduler`, operators
:class:`~junhong_cmp.asynq.inspector.Inspector`. The package imports nothing of the project around it.
"""
