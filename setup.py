"""What pyproject.toml cannot say: `experiments/` moves into the package, and README.md gets absolute links."""

import re
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


def long_description() -> str:
    """README.md for the package index, where links and pictures need full addresses."""
    settings = Path("pyproject.toml").read_text(encoding="utf-8")
    repository = re.findall(r'^Repository = "(.*)"$', settings, re.MULTILINE)[0]
    files = repository.replace("github.com", "raw.githubusercontent.com")
    text = Path("README.md").read_text(encoding="utf-8")
    text = re.sub(r'src="(?!https?:)', f'src="{files}/main/', text)
    return re.sub(r"\]\((?!https?:|#)", f"]({repository}/blob/main/", text)


setup(
    cmdclass={"build_py": BuildWithExperiments},
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
