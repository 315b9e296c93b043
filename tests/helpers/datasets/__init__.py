"""Small datasets, written as they are published."""
