"""The options of a request: validation, their meaning to the library, and their OpenAPI description."""

from __future__ import annotations

import math
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sparsedepth.dictionary import Dictionary
from sparsedepth.files import FORMATS, PROFILES
from sparsedepth.files import frames as stream_files
from sparsedepth.files.photos import PHOTO_SUFFIXES
from sparsedepth.geometry import intrinsics_from
from sparsedepth.hole_filling import HOLES, SIDES
from sparsedepth.restore import QUALITIES
from sparsedepth.sensors import Sensor, presets
from sparsedepth.sensors.choice import AUTO, CLEAN
from sparsedepth.serve import examples
from sparsedepth.serve.limits import HTTPError
from sparsedepth.serve.uploads import FRAMES, Upload
from sparsedepth.stereo import solvers
from sparsedepth.streams.stream import QUALITIES as STREAM_QUALITIES

PROFILE_NAMES = ("auto", *PROFILES)
DEFAULT_QUALITY = "balanced"
SENSOR_NAMES = (AUTO, CLEAN, *presets.names())
MAPS = frozenset(FORMATS)
PHOTOS = frozenset(PHOTO_SUFFIXES)
STREAMS = stream_files.SUFFIXES
CALIBRATIONS = frozenset((".json", ".yaml", ".yml", ".txt"))
NUMBERS = r"^ *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?( *, *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?)* *$"


class Form(BaseModel):
    """The texts of a form; an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _one_of(cls, value: Any, info: Any) -> Any:
        """Check that a field with an ``enum`` in its description holds one of these."""
        extra = cls.model_fields[info.field_name].json_schema_extra
        choices = extra.get("enum") if isinstance(extra, dict) else None
        if isinstance(choices, list) and value is not None and value not in choices:
            raise ValueError(f"choose one of {', '.join(map(str, choices))}")
        return value


def _choice(default: str | None, names: Any, says: str) -> Any:
    return Field(default, description=says, json_schema_extra={"enum": list(names)})


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


class MapForm(Form):
    """How files hold numbers, and the camera that measured them."""

    profile: str = _choice("auto", PROFILE_NAMES, "How the file holds numbers.")
    scale: float | None = Field(None, gt=0, lt=1e9, description="Stored number per unit, instead of the profile's own.")
    invalid: str | None = Field(
        None, pattern=NUMBERS, description="Stored numbers that mean unknown, with commas, instead of the profile's."
    )
    sensor: str | None = Field(
        None, max_length=20000, description=f"Noise of the camera: {', '.join(SENSOR_NAMES)}, or a record as JSON."
    )
    intrinsics: str | None = Field(
        None,
        max_length=200,
        description="Of the camera, for points: fx,fy,cx,cy in pixels. A view of 60 degrees is assumed without them.",
        pattern=NUMBERS,
    )

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, texts: Any) -> Any:
        """Take ``unit`` for ``profile``, as the field was called before; it is gone after the next release."""
        if isinstance(texts, dict) and "unit" in texts and "profile" not in texts:
            return {"profile" if name == "unit" else name: text for name, text in texts.items()}
        return texts

    @field_validator("sensor")
    @classmethod
    def _known(cls, sensor: str | None) -> str | None:
        """Check that a sensor is a name or a record; names of files mean nothing here."""
        if sensor is None or sensor in SENSOR_NAMES:
            return sensor
        if not sensor.lstrip().startswith("{"):
            raise ValueError(f"there is no sensor {sensor[:50]!r}; send one of {', '.join(SENSOR_NAMES)}, or a record")
        Sensor.from_json(sensor)
        return sensor

    @field_validator("intrinsics")
    @classmethod
    def _camera(cls, intrinsics: str | None) -> str | None:
        """Check that intrinsics are those of a camera; names of files mean nothing here."""
        numbers = None if intrinsics is None else _numbers(intrinsics)
        if numbers is not None and len(numbers) != 4:
            raise ValueError(f"give four numbers, fx,fy,cx,cy; {len(numbers)} came")
        intrinsics_from(numbers)
        return intrinsics

    @model_validator(mode="after")
    def _scaled(self) -> Self:
        if self.profile != "auto" and PROFILES[self.profile].scale is None and self.scale is None:
            raise ValueError(f"the profile {self.profile} needs the scale of the scene, too")
        return self

    def reading(self) -> dict[str, Any]:
        """Return how the file is read, and the intrinsics that were given."""
        codes, camera = (None if text is None else _numbers(text) for text in (self.invalid, self.intrinsics))
        return {"profile": self.profile, "scale": self.scale, "invalid": codes, "intrinsics": camera}


class InpaintForm(MapForm):
    """Fill holes and leave what was measured as it is."""

    example: str | None = _choice(None, examples.MAPS, "A built-in map instead of a file.")
    dictionary: str | None = _choice(None, Dictionary.builtins(), "A shipped dictionary.")
    quality: str = _choice(DEFAULT_QUALITY, QUALITIES, "Effort; 'paper' is the paper's own, and slow.")
    fill: str = _choice("auto", SIDES, "How holes are filled: auto takes the background for stereo cameras.")
    holes: str = _choice("auto", HOLES, "Which holes are filled; all = large ones too, less certain inwards.")

    def options(self) -> dict[str, Any]:
        """Return the options as the library calls them."""
        texts = {"quality": self.quality, "dictionary": self.dictionary, "fill": self.fill, "holes": self.holes}
        return texts | {"sensor": self.sensor}

    def task(self, upload: Upload) -> dict[str, Any]:
        """Return the task that decodes the upload."""
        more = {name: upload.files.get(name) for name in ("guide", "calibration")}
        return {"do": "read_map", "file": upload.files["depth"]} | more | self.reading()


class DenoiseForm(InpaintForm):
    """Correct outliers, smooth the noise of the sensor, and fill holes."""


class StreamForm(MapForm):
    """Restore the frames of a depth camera over time."""

    example: str | None = _choice(None, examples.STREAMS, "A built-in stream instead of files.")
    quality: str = _choice("live", STREAM_QUALITIES, "Effort; 'best' smooths as denoise does, and fills all holes.")

    def options(self) -> dict[str, Any]:
        """Return the options as the library calls them; the sensor is estimated by default."""
        sensor = None if self.sensor == AUTO else self.sensor
        return {"quality": self.quality, "sensor": sensor}

    def task(self, upload: Upload) -> dict[str, Any]:
        """Return the task that decodes the upload."""
        more = {"calibration": upload.files.get("calibration")}
        return {"do": "read_stream", "files": upload.frames} | more | self.reading()


class MatchForm(Form):
    """Disparities of the left view."""

    example: str | None = _choice(None, examples.PAIRS, "A built-in pair instead of files.")
    max_disparity: int | None = Field(
        None, ge=1, le=4096, description="The largest shift between the views, in pixels; an example has its own."
    )
    solver: str = _choice("semi_global", solvers.names(), "How the views are matched.")

    @model_validator(mode="after")
    def _ranged(self) -> Self:
        if (self.max_disparity is None) != (self.example is not None):
            raise ValueError("give max_disparity with two views, and none with an example")
        return self

    def options(self) -> dict[str, Any]:
        """Return the options as the library calls them."""
        return {"solver": self.solver}

    def task(self, upload: Upload) -> dict[str, Any]:
        """Return the task that decodes the upload."""
        return {"do": "read_pair", "max_disparity": self.max_disparity} | upload.files


FILES: dict[type[Form], dict[str, frozenset[str]]] = {
    DenoiseForm: {"depth": MAPS},
    InpaintForm: {"depth": MAPS},
    StreamForm: {FRAMES: STREAMS},
    MatchForm: {"left": PHOTOS, "right": PHOTOS},
}
FURTHER_FILES: dict[type[Form], dict[str, frozenset[str]]] = {
    DenoiseForm: {"guide": PHOTOS, "calibration": CALIBRATIONS},
    InpaintForm: {"guide": PHOTOS, "calibration": CALIBRATIONS},
    StreamForm: {"calibration": CALIBRATIONS},
    MatchForm: {},
}
"""Files that may come, too: a picture of the same view, and the intrinsics of the camera."""
NEEDED: dict[type[Form], list[str]] = {MatchForm: ["max_disparity"]}
"""Fields that are required with files."""


def parse(form: type[Form], texts: dict[str, str]) -> Any:
    """Parse the options of a form; the error names the first wrong one."""
    try:
        return form.model_validate(texts)
    except ValidationError as error:
        raise HTTPError(422, sentence(error.errors())) from None


def sentence(errors: Any) -> str:
    """Describe the first error of a validator's list."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    says = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        says = "there is no such field; /openapi.json lists them"
    return f"{place[:50]}: {says}" if place else says


def described(form: type[Form]) -> dict[str, Any]:
    """Describe the form as a multipart body in OpenAPI."""
    schema = form.model_json_schema()
    properties = {name: _plain(about) for name, about in schema["properties"].items()}
    for name, suffixes in (FILES[form] | FURTHER_FILES[form]).items():
        says = f"A file with its name; it ends in one of {', '.join(sorted(suffixes))}."
        file = {"type": "string", "format": "binary", "description": says}
        properties[name] = {"type": "array", "items": file, "minItems": 1} if name == FRAMES else file
    return {
        "type": "object",
        "description": form.__doc__,
        "properties": properties,
        "additionalProperties": False,
        "anyOf": [{"required": sorted(FILES[form]) + NEEDED.get(form, [])}, {"required": ["example"]}],
    }


def _plain(about: dict[str, Any]) -> dict[str, Any]:
    """Remove null from an optional field: it may be left out, but not be null."""
    kinds = [kind for kind in about.pop("anyOf", []) if kind != {"type": "null"}]
    if about.get("default", math.inf) is None:
        del about["default"]
    return (kinds[0] if kinds else {}) | about
