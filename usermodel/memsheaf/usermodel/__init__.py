"""memsheaf.usermodel."""
