"""Weights & Biases; nothing else imports this room but the command line."""
