"""What pyproject.toml cannot say: in a wheel, the folders beside `harness/` lie in `kernel_referee/`."""

from setuptools import find_packages, setup

_SHIPPED = {
    f"kernel_referee.{folder.replace('/', '.')}": folder
    for folder in ("problems", "candidates", "configs", "tests/known", "tests/adversarial")
}

setup(
    packages=[*find_packages(include=["harness*"]), "kernel_referee", *_SHIPPED],
    package_dir=_SHIPPED,
    package_data={
        "harness.report.html": ["*.j2", "*.css", "*.js"],
        "harness.protocol": ["*.cpp"],
        **{package: ["**/*"] for package in _SHIPPED},
    },
    exclude_package_data={package: ["**/*.pyc"] for package in _SHIPPED},
)
