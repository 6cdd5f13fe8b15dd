"""Where Spark finds `format("ravel")`: it looks into packages whose names begin so. See `ravel.exports.spark_source`."""

from ravel.exports.spark_source import RavelSource as DefaultSource

__all__ = ["DefaultSource"]
