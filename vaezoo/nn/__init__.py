"""A model's parts: networks, and latent groups with their heads and posteriors."""
