"""memsheaf.stack."""
