"""memsheaf.interfaces."""
