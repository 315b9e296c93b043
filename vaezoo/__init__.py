"""vaezoo: disentangled representation learning with variational autoencoders.

A VAE here is an encoder, latent groups, a decoder and an ordered dictionary of regularizers; a paper is a preset that
names its latents and its regularizers. The public names are listed in `__init__.pyi`; each loads when it is first used,
so importing the package is quick.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
