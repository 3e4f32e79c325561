"""memsheaf.sessionsearch."""
