"""`python -m memsheaf.interfaces`."""

from .cli import main

main()
