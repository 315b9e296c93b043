"""What pyproject.toml cannot say: `experiments/` lies beside the package in a clone and inside it once installed."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithExperiments(build_py):
    """Copy `experiments/` to `vaezoo/experiments/`, where `vaezoo.runs.experiments` looks first."""

    def run(self) -> None:
        """Build, and add what is no Python; an editable install reads the clone's own."""
        super().run()
        if not self.editable_mode:
            shutil.copytree("experiments", Path(self.build_lib, "vaezoo", "experiments"), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithExperiments})
