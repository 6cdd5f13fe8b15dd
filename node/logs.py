"""Structured logs on standard error: one line an event, levels from the configuration, never a secret.

Events carry ids, counts and reasons. Keys, links, tokens and texts of users are never given to a logger.
"""

import logging
import sys

import structlog


def configure(level: str) -> None:
    """Log at `level` (debug, info, warning, error) and above."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
