"""What lies on disk: run folders, files, checkpoints, and how a run is loaded and resumed."""
