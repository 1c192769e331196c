"""The sample data lie in adult_sample/ of a clone, and in dpsql/sample/ of a wheel. All else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithSample(build_py):
    """Puts the sample into the package; an editable install finds it where it lies."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib) / "dpsql" / "sample"
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("adult.csv", "adult.toml", "README.md"):
                shutil.copy(Path(__file__).parent / "adult_sample" / name, folder)


setup(cmdclass={"build_py": BuildWithSample})
