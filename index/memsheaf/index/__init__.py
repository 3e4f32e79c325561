"""memsheaf.index."""
