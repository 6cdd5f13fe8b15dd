"""Sends Ravel's own modules with Spark tasks, so that the cluster needs no installation."""

from types import ModuleType

from pyspark import cloudpickle


def ship_by_value(*modules: ModuleType) -> None:
    """Have what tasks use of these modules pickled with them, and not by the names of modules that executors lack."""
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark ships it without annotations
