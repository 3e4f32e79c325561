"""Built-in memory stores, one module each; import the one you use."""
