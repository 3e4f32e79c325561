"""The commands, one module per group, imported when one of them is called."""
