"""`pretrained:NAME` and `hub:user/name`, in place of a checkpoint."""

import shutil
from pathlib import Path

from filelock import FileLock

from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.shared import sha256_of
from vaezoo.sharing.pretrained import shared_folder

SCHEMES = ("pretrained:", "hub:")


def fetch_shared(address: str) -> Path:
    """Put a shared model into the current folder, where commands leave scores and pictures beside it.

    Args:
        address: `pretrained:NAME` or `hub:user/name`.

    Returns:
        Its folder, `pretrained/NAME` or `pretrained/user/name`.
    """
    source = RunFolder(shared_folder(address))
    target = RunFolder(Path("pretrained", *address.partition(":")[2].split("/")))
    target.path.mkdir(parents=True, exist_ok=True)
    with FileLock(target.path / ".lock"):  # of several ranks, one copies
        for old in (source.shared_config, source.weights, source.training):
            new = target.path / old.name
            if old.is_file() and (not new.is_file() or sha256_of(new) != sha256_of(old)):
                with atomic_write(new) as draft:
                    shutil.copyfile(old, draft)
    return target.path
