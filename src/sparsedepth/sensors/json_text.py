"""The fields of a sensor as JSON text, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from sparsedepth.sensors.laws import Correlation, Law, PowerLaw, TableLaw
from sparsedepth.vocabulary import InputError

FORMAT, VERSION = "sparsedepth sensor", 1
LAWS: dict[str, type[Law]] = {"power": PowerLaw, "table": TableLaw}


def text_of_fields(fields: Mapping[str, Any]) -> str:
    """Write the fields of a sensor as JSON; an infinite range becomes null."""
    plain = dict(fields) | {name: _plain_law(fields[name]) for name in ("noise", "step")}
    plain |= {"correlation": asdict(fields["correlation"]), "sources": dict(fields["sources"])}
    plain["farthest"] = None if np.isinf(fields["farthest"]) else fields["farthest"]
    return json.dumps({"format": FORMAT, "version": VERSION} | plain, indent=1)


def fields_of_text(text: str) -> dict[str, Any]:
    """Read the fields of a sensor from JSON; refuse any other text."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"the sensor is not JSON ({error}); write one with Sensor.save") from None
    if not isinstance(record, dict) or record.pop("format", None) != FORMAT:
        raise InputError("the JSON is no sensor; write one with Sensor.save")
    if record.pop("version", None) != VERSION:
        raise InputError(f"the sensor has another version than {VERSION}; write it again with Sensor.save")
    try:
        return record | _built(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the sensor lacks or misspells a field ({error}); write one with Sensor.save") from None


def _built(record: Mapping[str, Any]) -> dict[str, Any]:
    """Build the fields that JSON does not hold as they are."""
    return {
        "noise": _law(record["noise"]),
        "step": _law(record["step"]),
        "correlation": Correlation(**record["correlation"]),
        "farthest": np.inf if record["farthest"] is None else record["farthest"],
    }


def _plain_law(law: Law) -> dict[str, Any]:
    return {"law": "power" if isinstance(law, PowerLaw) else "table"} | asdict(law)


def _law(plain: Mapping[str, Any]) -> Law:
    numbers = dict(plain)
    return LAWS[numbers.pop("law")](**numbers)
