"""The API does what its description says, whatever is sent to it."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from sparsedepth.serve.app import make_app
from sparsedepth.serve.limits import Limits

pytestmark = pytest.mark.service

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
schema = schemathesis.openapi.from_dict(make_app(Limits()).openapi())


@schema.parametrize()
@settings(max_examples=12, phases=(Phase.generate,), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_answers_are_as_described(plain, case):
    if isinstance(case.body, dict) and "example" in case.body and case.query.get("answer") in ("npz", "tiff"):
        case.query["answer"] = "links"  # what is accepted need not be done
    answer = case.call(base_url=plain.url)
    case.validate_response(answer, checks=CHECKS)
    if answer.status_code == 202:
        plain.client.delete(answer.json()["links"]["self"])


def test_everything_is_described():
    assert set(schema.raw_schema["paths"]) == {
        "/healthz",
        "/v1/about",
        "/v1/denoise",
        "/v1/inpaint",
        "/v1/match",
        "/v1/stream",
        "/v1/jobs/{job}",
        "/v1/jobs/{job}/{name}",
    }
