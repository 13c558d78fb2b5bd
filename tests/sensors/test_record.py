"""The record of a sensor: laws, units, JSON, presets."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from sparsedepth.sensors import Correlation, PowerLaw, Sensor, TableLaw
from sparsedepth.sensors.presets import PRESETS, names
from sparsedepth.vocabulary import InputError

DEPTHS = np.geomspace(500.0, 4000.0, 9)


@pytest.mark.parametrize("name", names())
def test_json_keeps_every_preset(name, tmp_path):
    sensor = Sensor.preset(name)
    sensor.save(tmp_path / "sensor.json")
    assert Sensor.load(tmp_path / "sensor.json") == sensor


@pytest.mark.parametrize("name", names())
def test_units_convert_to_and_fro(name):
    sensor = Sensor.preset(name)
    metres = sensor.to("m")
    np.testing.assert_allclose(metres.std(DEPTHS / 1000) * 1000, sensor.std(DEPTHS), rtol=1e-12)
    np.testing.assert_allclose(metres.to("mm").std(DEPTHS), sensor.std(DEPTHS), rtol=1e-12)
    assert metres.farthest == pytest.approx(sensor.farthest / 1000)


@pytest.mark.parametrize("sensor", PRESETS.values(), ids=lambda s: s.name)
def test_every_number_of_a_preset_has_a_source(sensor):
    plain = Sensor()
    said = {"name", "unit", "sources", "outlier_kind", "domain", "farthest"}
    for field in fields(Sensor):
        if field.name not in said and getattr(sensor, field.name) != getattr(plain, field.name):
            assert len(sensor.sources[field.name]) >= 7, field.name


@pytest.mark.parametrize("sensor", PRESETS.values(), ids=lambda s: s.name)
def test_the_standard_deviation_is_at_least_that_of_rounding(sensor):
    assert (sensor.std(DEPTHS) >= sensor.step(DEPTHS) / np.sqrt(12)).all()
    assert np.isnan(sensor.std(np.nan))


def test_the_measured_presets_have_the_measured_noise():
    assert Sensor.preset("kinect_v1").std(2000.0) == pytest.approx(0.53 + 1.56e-6 * 2000**2, rel=0.06)
    temporal = replace(Sensor.preset("realsense_d455"), pattern=0.0)
    assert temporal.std(2510.0) == pytest.approx(16.1, rel=0.06)


def test_laws_refuse_what_is_no_law():
    for wrong in ((-1.0, 0.0), (np.nan, 0.0)):
        with pytest.raises(InputError, match="finite"):
            PowerLaw(*wrong)
    with pytest.raises(InputError, match="as many"):
        TableLaw((1.0, 2.0), (1.0,))
    with pytest.raises(InputError, match="rising"):
        TableLaw((2.0, 1.0), (1.0, 1.0))
    with pytest.raises(InputError, match="correlation lengths"):
        Correlation(-1.0, 1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"domain": "disparity"},
        {"unit": "inch"},
        {"outliers": 2.0},
        {"nearest": 5.0, "farthest": 1.0},
        {"inflation": 0.0},
    ],
    ids=str,
)
def test_the_record_refuses_what_cannot_be(wrong):
    with pytest.raises(InputError):
        replace(Sensor(), **wrong)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "sparsedepth sensor", "version": 1}', '{"format": 3}'])
def test_what_is_no_sensor_is_refused(text):
    with pytest.raises(InputError, match=r"Sensor\.save"):
        Sensor.from_json(text)


def test_a_misspelled_field_is_refused():
    record = json.loads(Sensor.preset("kinect_v1").to_json())
    record["nosie"] = record.pop("noise")
    with pytest.raises(InputError, match="misspells"):
        Sensor.from_json(json.dumps(record))


def test_unknown_names_and_units_are_refused():
    with pytest.raises(InputError, match="kinect_v1"):
        Sensor.preset("kinect")
    with pytest.raises(InputError, match="cannot become"):
        Sensor().to("mm")
    with pytest.raises(InputError, match=r"there is no file no such file\.json"):
        Sensor.load("no such file.json")
    with pytest.raises(InputError, match="cannot be read"):
        Sensor.load(".")


def test_correlation_falls_from_one():
    correlation = Correlation(6.0, 3.0, exponent=1.5, white=0.1)
    lags = np.arange(12.0)
    along = correlation(0.0, lags)
    assert along[0] == 1
    assert (np.diff(along) < 0).all()
    assert (correlation(lags[1:], 0.0) < along[1:]).all()
