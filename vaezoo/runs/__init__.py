"""Files on disk: run folders and checkpoints, and how to load and resume them."""
