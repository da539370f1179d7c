"""The schema's history: one revision a file, plain SQL, every step reversible."""
