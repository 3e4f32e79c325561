"""memsheaf.agent."""
