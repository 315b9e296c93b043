"""One HTML file that shows runs: scores, curves, configurations and what their latents do."""

from vaezoo.report.page import write_page
from vaezoo.report.runs import Run, find_runs, read_run

__all__ = ["Run", "find_runs", "read_run", "write_page"]
