"""Limits that hold while bytes arrive: uploads that are long, slow, cut or lie; full queues; jobs that last."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

import pytest

from running_service import depth_file, scene

pytestmark = pytest.mark.service

HEAD = b'--x7\r\nContent-Disposition: form-data; name="depth"; filename="a.png"\r\n\r\n'
TAIL = b"\r\n--x7--\r\n"


def request(body: bytes, *headers: str) -> bytes:
    lines = ["POST /v1/denoise HTTP/1.1", "Host: 127.0.0.1", "Content-Type: multipart/form-data; boundary=x7", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def conversation(strict, *pieces: bytes, pause: float = 0.0) -> str:
    """What the service says to these bytes, until it hangs up or is silent."""
    answer = b""
    with strict.connect() as line:
        line.settimeout(6)
        with suppress(ConnectionError):
            for piece in pieces:
                line.sendall(piece)
                time.sleep(pause)
        with suppress(TimeoutError, ConnectionError):
            while piece := line.recv(65536):
                answer += piece
    return answer.decode()


def still_well(strict) -> None:
    """All is tidied up, and the next job is done."""
    end = time.monotonic() + 10
    while strict.client.get("/healthz").json()["jobs"] > 8 and time.monotonic() < end:
        time.sleep(0.1)
    strict.idle()
    assert strict.finished(strict.post("inpaint", depth_file(), quality="fast"))["state"] == "done"


def test_too_many_bytes_by_their_own_word(strict):
    answer = strict.post("denoise", {"depth": ("a.png", b"0" * 300_000)})
    assert answer.status_code == 413
    assert "195.3 KiB" in answer.json()["error"]
    still_well(strict)


def test_too_many_bytes_without_a_word(strict):
    def endless():
        yield HEAD
        for _ in range(100):
            yield b"0" * 10_000

    headers = {"content-type": "multipart/form-data; boundary=x7"}
    assert strict.client.post("/v1/denoise", content=endless(), headers=headers).status_code == 413
    still_well(strict)


def test_a_refused_client_does_not_send_for_ever(strict):
    """It is hung up on, although it was told before."""
    with strict.connect() as line, pytest.raises(ConnectionError):
        _send_endlessly(line, 15)


def _send_endlessly(line: socket.socket, seconds: float) -> None:
    line.sendall(request(b"", "Transfer-Encoding: chunked"))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        line.sendall(b"2000\r\n" + b"0" * 0x2000 + b"\r\n")
        time.sleep(0.005)


def test_a_slow_upload_is_given_up(strict):
    body = HEAD + b"0" * 100 + TAIL
    began = time.monotonic()
    said = conversation(strict, request(HEAD, f"Content-Length: {len(body)}"))
    assert said.startswith("HTTP/1.1 408")
    assert "too slow" in said
    assert time.monotonic() - began < 5
    still_well(strict)


def test_a_trickle_is_given_up_too(strict):
    pieces = [request(HEAD, "Content-Length: 100000"), *[b"0"] * 24]
    began = time.monotonic()
    said = conversation(strict, *pieces, pause=0.25)
    assert said.startswith("HTTP/1.1 408")
    assert time.monotonic() - began < 12


def test_a_request_that_never_says_what_it_wants_is_hung_up_on(strict):
    began = time.monotonic()
    assert conversation(strict, b"POST /v1/denoise HTT") == ""
    assert time.monotonic() - began < 5


def test_an_upload_that_breaks_off_leaves_nothing(strict):
    def settle() -> int:
        end = time.monotonic() + 5
        while (jobs := strict.client.get("/healthz").json()["jobs"]) and time.monotonic() < end:
            time.sleep(0.02)
        return jobs

    assert settle() == 0  # what is left of others expires
    with strict.connect() as line:
        line.sendall(request(HEAD + b"0" * 5000, "Content-Length: 100000"))
    assert settle() == 0
    still_well(strict)


@pytest.mark.parametrize("length", [len(HEAD), len(HEAD) + 3])
def test_a_form_that_is_longer_than_it_says_is_refused(strict, length):
    said = conversation(strict, request(HEAD + b"0" * 1000 + TAIL, f"Content-Length: {length}"))
    assert said.startswith("HTTP/1.1 422")
    assert "last boundary" in said


@pytest.mark.parametrize("length", ["-1", "many", "1e3"])
def test_a_length_that_is_no_number_is_refused(strict, length):
    assert conversation(strict, request(HEAD, f"Content-Length: {length}")).startswith("HTTP/1.1 400")


def test_garbage_is_refused(strict):
    assert conversation(strict, b"\x16\x03\x01\x02\x00 hello\r\n\r\n").startswith("HTTP/1.1 400")
    still_well(strict)


def test_too_many_pixels(strict):
    answer = strict.post("denoise", depth_file(scene(400, 400)))
    assert answer.status_code == 413
    assert "400 x 400 pixels; the budget is 100000 pixels" in answer.json()["error"]


def test_a_job_that_lasts_too_long_is_stopped(strict):
    """The process that did it is ended, and another does the next job."""
    answer = strict.post("denoise", depth_file(scene(300, 330)), answer="npz", quality="paper", dictionary="phi1_32")
    assert answer.status_code == 503
    assert "longer than 3 seconds" in answer.json()["error"]
    still_well(strict)


def test_a_full_queue_is_said_and_empties(strict):
    strict.idle()
    statuses: list[int] = []

    def client(number: int) -> None:
        noisy = depth_file(scene(100, 150, number))
        statuses.append(strict.post("denoise", noisy, answer="tiff", quality="fast").status_code)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert set(statuses) == {200, 429}, statuses
    still_well(strict)


def test_results_expire_and_old_ones_make_room(strict):
    """13 bytes a pixel are kept, 500,000 in all: of four maps of 12,000 pixels the first must go, and later all."""
    strict.idle()
    told = [strict.finished(strict.post("inpaint", depth_file(scene(100, 120)), quality="fast")) for _ in range(4)]
    statuses = [{strict.client.get(each["links"]["self"]).status_code for each in told}]
    end = time.monotonic() + 20
    while statuses[-1] != {404} and time.monotonic() < end:
        time.sleep(0.1)
        now = [strict.client.get(each["links"]["self"]).status_code for each in told[::-1]]
        assert now == sorted(now), "the oldest first; so the newest is asked first, as others may go meanwhile"
        statuses.append(set(now))
    assert {200, 404} in statuses
    assert statuses[-1] == {404}


def test_a_client_that_goes_away_takes_its_job_with_it(strict):
    """The job would last until it is stopped, three seconds from its beginning."""
    strict.idle()
    wishes = b"".join(
        b'--x7\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % wish
        for wish in ((b"quality", b"paper"), (b"dictionary", b"phi1_32"))
    )
    body = wishes + HEAD + depth_file(scene(300, 330))["depth"][1] + TAIL
    asked = request(body, f"Content-Length: {len(body)}").replace(b"/v1/denoise", b"/v1/denoise?answer=npz")
    with strict.connect() as line:
        line.sendall(asked)
        end = time.monotonic() + 10
        while not strict.client.get("/healthz").json()["running"] and time.monotonic() < end:
            time.sleep(0.01)
    began = time.monotonic()
    strict.idle()
    assert time.monotonic() - began < 1.5
    still_well(strict)
