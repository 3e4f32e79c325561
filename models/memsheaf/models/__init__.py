"""memsheaf.models."""
