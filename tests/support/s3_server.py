"""An S3 server of this process with an empty bucket."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer


@dataclass(frozen=True)
class OpenBucket:
    """A bucket, as ``boto3`` has it, and the variables by which clients find its server."""

    bucket: Any
    environment: Mapping[str, str]


@contextmanager
def open_bucket() -> Iterator[OpenBucket]:
    """Start a server and make a bucket in it; within the block the environment names the server."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            yield OpenBucket(boto3.resource("s3").create_bucket(Bucket=f"b{uuid4().hex[:8]}"), environment)
    finally:
        server.stop()
