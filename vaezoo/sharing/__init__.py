"""Trained models given to others: files that anyone can read, the models that come with vaezoo, the Hub, exports."""
