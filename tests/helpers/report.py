"""Runs of strangers."""

import json
from pathlib import Path

EVIL = "<img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>\"'&\u2028"


def write_scores(file: Path, metrics: object, checkpoint: str = "last.ckpt") -> None:
    record = {"checkpoint": checkpoint, "images": 10, "data": {"split": "test"}, "metrics": metrics}
    file.write_text(json.dumps(record))
