"""Datasets drawn from their factors instead of read from disk."""
