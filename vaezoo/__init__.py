"""vaezoo: disentangled representation learning with variational autoencoders.

A VAE here is an encoder, latent groups, a decoder and an ordered dictionary of regularizers. A paper is a preset that
names its latents and its regularizers. `__init__.pyi` lists the public names. Each loads on first use, so importing the
package is fast.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
