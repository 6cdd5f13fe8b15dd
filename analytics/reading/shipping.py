"""Sends Ravel's own modules, and what fsspec finds credentials by, with Spark tasks: a cluster needs no installation."""

import os
from collections.abc import Mapping
from types import ModuleType

from pyspark import cloudpickle


def ship_by_value(*modules: ModuleType) -> None:
    """Pickle what tasks use of these modules by value: executors lack the modules."""
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark ships it without annotations


def drivers_environment() -> Mapping[str, str]:
    """Return the variables of this process by which fsspec's drivers are set."""
    return {name: value for name, value in os.environ.items() if name.startswith("FSSPEC_")}
