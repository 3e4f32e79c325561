"""memsheaf.providers."""
