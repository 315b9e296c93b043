"""Opens the page, from the command line or from Python."""

import os
from html import escape
from typing import Any

from vaezoo.explorer.explorer import Explorer
from vaezoo.explorer.images import POOL, Images
from vaezoo.models.base import VAE

HOST = "127.0.0.1"


def explore(
    model: VAE, data: Any = None, *, port: int | None = None, share: bool = False, open: bool = False, pool: int = POOL
) -> Any:
    """Open a page with a slider for every latent unit of a model; needs the extra `explore`.

    In a notebook the page is shown below the cell. A script waits until the page is stopped with Ctrl-C.

    Args:
        model: A trained model, which is put into evaluation mode.
        data: Images to start from: a datamodule of vaezoo after `setup()`, a tensor of images, (images, labels) or a
            `Batch`. They also rank the units by their KL. None leaves the prior and uploads.
        port: Port of this machine. Defaults to the first free one from 7860 on.
        share: Whether anyone with the link may see the page, through Gradio's servers.
        open: Whether to open a browser.
        pool: Largest number of images to read.

    Returns:
        The page, Gradio's `Blocks`; its `close()` ends it.

    Raises:
        ModuleNotFoundError: Gradio is missing.
    """
    images = None if data is None else Images.of(data, pool)
    return launch(Explorer({type(model).__name__: model}, images), port=port, share=share, open=open)


def launch(explorer: Explorer, *, port: int | None, share: bool, open: bool, **options: Any) -> Any:
    """Serve the page of an explorer on this machine; nothing is sent elsewhere unless it is shared.

    Args:
        explorer: What to show.
        port: As in `explore`.
        share: As in `explore`.
        open: As in `explore`.
        options: Further ones of Gradio's `launch`.
    """
    page = require_gradio()
    built = page.Page(explorer, escape(f"vaezoo explore · {' | '.join(explorer.names)}"))
    try:
        built.blocks.launch(
            server_name=HOST,
            server_port=port,
            share=share,
            inbrowser=open,
            theme=page.THEME,
            css_paths=page.CSS,
            ssr_mode=False,
            footer_links=["settings"],
            **options,
        )
    except OSError as error:
        if port is None:
            raise
        raise OSError(f"port {port} is not free: choose another with --port, or leave it out") from error
    return built.blocks


def require_gradio() -> Any:
    """The module with the page, which needs Gradio.

    Raises:
        ModuleNotFoundError: Gradio is missing.
    """
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before it is imported; nobody is told of a page
    try:
        from vaezoo.explorer import page
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "gradio":
            raise
        raise ModuleNotFoundError("vaezoo explore needs Gradio: pip install 'vaezoo[explore]'") from error
    return page
