"""Measure how long /healthz takes, again and again, in a process that does nothing else: HOST PORT SECONDS."""

import http.client
import json
import sys
import time


def probe(host: str, port: int, seconds: float) -> list[float]:
    """Measure the seconds of each answer."""
    took = []
    line = http.client.HTTPConnection(host, port, timeout=30)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        line.request("GET", "/healthz")
        answer = line.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"/healthz answered with {answer.status}")
        took.append(time.perf_counter() - began)
        time.sleep(0.01)
    return took


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
