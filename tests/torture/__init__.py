"""Runs that are killed at random and must end as undisturbed ones do: `make torture N=100`."""
