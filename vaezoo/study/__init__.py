"""Studies: many runs of the command line, on Ray, and their tables."""
