"""A server of objects on loopback that speaks S3, in a process of its own."""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.machine import patience

_POLL_SECONDS = 0.1


@contextlib.contextmanager
def object_store(log: Path, bucket: str) -> Iterator[str]:
    """The address of a server with a bucket, which keeps all in memory. `log` has a line for each request."""
    with log.open("wb") as said:  # not a pipe, which would fill
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
    try:
        address = _address(log)
        # Of a process of its own: the driver leaves a thread with a loop and open connections behind.
        code = (
            "import sys, s3fs\n"
            "s3fs.S3FileSystem(key='a', secret='b', client_kwargs={'endpoint_url': sys.argv[1]}).mkdir(sys.argv[2])"
        )
        command = [sys.executable, "-P", "-c", code, address, bucket]
        subprocess.run(command, check=True, timeout=patience(30))
        yield address
    finally:
        server.kill()
        server.wait()


def options_of(address: str) -> str:
    """What FSSPEC_S3 says of this store."""
    return json.dumps({"key": "bob", "secret": "b", "client_kwargs": {"endpoint_url": address}})


def _address(log: Path) -> str:
    deadline = time.monotonic() + patience(30)
    while (found := re.search(r"Running on (http://\S+)", log.read_text())) is None:
        assert time.monotonic() < deadline, "the server does not say where it listens"
        time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for
    return found[1]
