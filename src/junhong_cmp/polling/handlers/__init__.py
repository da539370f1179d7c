"""Task handlers, one task type a file."""
