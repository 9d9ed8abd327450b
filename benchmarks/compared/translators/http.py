"""Asking a server that a translator started, and waiting until it is there."""

import http.client
import socket
import time

from benchmarks.compared.translators.jobs import CLIENT_PATHS, KEY, Job, Reply


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, seconds: float = 20) -> None:
    """Wait until somebody listens. Raises `TimeoutError`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")


def ask(port: int, job: Job, body: bytes, reply: Reply) -> None:
    """Send the request of a job, and put down what comes, also before the connection breaks."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}", "x-api-key": KEY}
    headers["anthropic-version"] = "2023-06-01"
    try:
        connection.request("POST", f"/v1/{CLIENT_PATHS[job.client]}", body, headers)
        response = connection.getresponse()
        reply.status = response.status
        while data := response.read1(65536):
            reply.body += data
    finally:
        connection.close()
