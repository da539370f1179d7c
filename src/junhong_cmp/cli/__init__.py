"""The ``junhong`` command, one file a command group. Importing this package imports nothing heavy."""
