"""Every way in from outside: the command line."""

from .cli import main

__all__ = ["main"]
