"""The routes: three tasks, their jobs and products, the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from sparsedepth.dictionary import Dictionary
from sparsedepth.serve import examples, forms
from sparsedepth.serve.guard import Guard, answer
from sparsedepth.serve.jobs import Job, Jobs, State, finished
from sparsedepth.serve.limits import Limits, Refusal
from sparsedepth.serve.products import OCTETS, PRODUCTS, RAW
from sparsedepth.serve.uploads import receive

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PIECE = 1 << 18


class Facts(BaseModel):
    """Of a map; shares are of all its pixels."""

    shape: tuple[int, int]
    unit: str
    kind: str
    input: Literal["map", "photo"]
    assumed: str
    known: float
    measured: float | None = None
    corrected: float | None = None
    filled: float | None = None
    refused: float | None = None


class JobAnswer(BaseModel):
    """What has become of a job."""

    id: str
    task: str
    state: State
    stage: str
    position: int | None
    seconds: float
    expected_seconds: float | None
    expires_in: float | None
    error: str | None
    facts: Facts | None
    links: dict[str, str]


class ErrorAnswer(BaseModel):
    """Why not, in a sentence."""

    error: str


class Health(BaseModel):
    status: Literal["ok"]
    waiting: int
    running: int
    jobs: int


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorAnswer} for status in statuses}


FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
MAP_FILE = FILE | {"image/tiff": {"schema": {"type": "string", "format": "binary"}}}
PRODUCT_FILE = MAP_FILE | {"image/png": {"schema": {"type": "string", "format": "binary"}}}
TASK_ERRORS = _errors(400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
Answer = Annotated[
    Literal["links", "npz", "tiff"],
    Query(description="links: a job to ask about, at once (202); npz or tiff: the result, when it is there (200)."),
]


def make_app(limits: Limits, *, token: str | None = None, hosts: Collection[str] | None = None) -> FastAPI:
    """The application; with ``hosts`` it answers to these names only, with a token to those who give it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Jobs(limits) as jobs:
            app.state.jobs = jobs
            yield

    app = FastAPI(
        title="sparsedepth",
        version=version("sparsedepth"),
        summary="Depth maps restored, and stereo pairs matched, with a variance and an origin for every pixel.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.limits = limits
    app.add_middleware(Guard, token=token, hosts=hosts, requests=limits.requests)
    _say_errors(app)
    _add_tasks(app)
    _add_jobs(app)
    _add_page(app)
    return app


def _say_errors(app: FastAPI) -> None:
    """Every error is one sentence, whoever raised it."""

    @app.exception_handler(Refusal)
    async def _(request: Request, refusal: Refusal) -> Response:
        return answer(refusal)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> Response:
        return answer(Refusal(422, forms.sentence(error.errors())))

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> Response:
        says = {404: "there is nothing at this address", 405: "this address does not do that"}
        return JSONResponse({"error": says.get(error.status_code, error.detail)}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def _(request: Request, error: Exception) -> Response:
        return answer(Refusal(500, f"a mistake in sparsedepth ({type(error).__name__}); please report it"))


def _add_tasks(app: FastAPI) -> None:
    for what, form in {"denoise": forms.DenoiseForm, "inpaint": forms.InpaintForm, "match": forms.MatchForm}.items():
        body = {"required": True, "content": {"multipart/form-data": {"schema": forms.described(form)}}}
        app.post(
            f"/v1/{what}",
            summary=form.__doc__,
            operation_id=what,
            response_model=None,
            responses=TASK_ERRORS | {202: {"model": JobAnswer, "description": "Accepted"}, 200: {"content": MAP_FILE}},
            openapi_extra={"requestBody": body},
        )(_task(what, form))


def _task(what: str, form: type[forms.Form]) -> Any:
    async def endpoint(request: Request, answer: Answer = "links") -> Response:
        jobs: Jobs = request.app.state.jobs
        job = jobs.admit(what)
        try:
            await _accept(request, jobs, job, form)
        except BaseException:
            jobs.forget(job)
            raise
        if answer == "links":
            return JSONResponse(_told(jobs, job).model_dump(), 202, {"location": f"/v1/jobs/{job.id}"})
        try:
            await finished(job, _gone(request))
            if job.failure is not None:
                raise job.failure
            return await _file(jobs, job, f"result.{answer}")
        finally:
            jobs.forget(job)

    return endpoint


async def _accept(request: Request, jobs: Jobs, job: Job, form: type[forms.Form]) -> None:
    """Take the upload in, look at its options, decode it, and queue the job."""
    files = forms.FILES[form]
    upload = await receive(request, job.folder, jobs.limits, files)
    wishes = forms.parse(form, upload.texts)
    if wishes.example is not None and upload.files:
        raise Refusal(422, "send a file or name an example, not both")
    missing = [name for name in files if name not in upload.files]
    if wishes.example is None and missing:
        raise Refusal(422, f"the form lacks {' and '.join(missing)}: send a file, or name an example")
    pixels = jobs.limits.pixels
    if wishes.example is not None:
        task: dict[str, Any] = {"do": "example", "name": wishes.example}
    elif isinstance(wishes, forms.MatchForm):
        task = {"do": "read_pair", "max_disparity": wishes.max_disparity, "pixels": pixels} | upload.files
    else:
        task = {"do": "read_map", "file": upload.files["depth"], "profile": wishes.profile, "scale": wishes.scale,
                "invalid": wishes.codes(), "pixels": pixels}  # fmt: skip
    await jobs.take_in(job, task, upload.shown)
    options = wishes.options()
    work = {"do": "match"} if job.what == "match" else {"do": "restore", "what": job.what}
    jobs.enqueue(job, work | {"options": options}, (job.what, *map(str, options.values())))


async def _gone(request: Request) -> None:
    """Ends when the client has."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _told(jobs: Jobs, job: Job) -> JobAnswer:
    place = f"/v1/jobs/{job.id}"
    there = [] if not job.facts else ["before.f32"]
    if job.state == "done":
        there += [*list(RAW)[1:], *PRODUCTS]
    return JobAnswer(
        id=job.id,
        task=job.what,
        state=job.state,
        stage=job.stage,
        position=jobs.position(job),
        seconds=round(job.seconds, 3),
        expected_seconds=jobs.expected_seconds(job),
        expires_in=jobs.expires_in(job),
        error=None if job.failure is None else job.failure.sentence,
        facts=Facts.model_validate(job.facts) if job.facts else None,
        links={"self": place} | {name: f"{place}/{name}" for name in there},
    )


async def _file(jobs: Jobs, job: Job, name: str) -> Response:
    """A product of a job, streamed; it may expire meanwhile, since the file is open."""
    path = await jobs.product(job, name)
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed when sent)
    except FileNotFoundError:
        raise Refusal(404, "the job has expired") from None

    async def pieces() -> AsyncIterator[bytes]:
        with file:
            while piece := file.read(PIECE):
                yield piece

    headers = {"content-length": str(path.stat().st_size), "content-disposition": f'attachment; filename="{name}"'}
    media = PRODUCTS[name].media if name in PRODUCTS else OCTETS
    return StreamingResponse(pieces(), media_type=media, headers=headers)


def _add_jobs(app: FastAPI) -> None:
    gone = _errors(401, 403, 404, 422, 503)

    @app.get("/v1/jobs/{job}", responses=gone, operation_id="job")
    async def _(request: Request, job: str) -> JobAnswer:
        """How far a job is, and where its results are."""
        jobs: Jobs = request.app.state.jobs
        return _told(jobs, jobs.find(job))

    @app.delete("/v1/jobs/{job}", status_code=204, responses=gone, operation_id="forget")
    async def _(request: Request, job: str) -> None:
        """Stop a job, or remove its results."""
        jobs: Jobs = request.app.state.jobs
        jobs.forget(jobs.find(job))

    @app.get(
        "/v1/jobs/{job}/{name}",
        response_model=None,
        responses=gone | _errors(409, 413, 500) | {200: {"content": PRODUCT_FILE}},
        operation_id="product",
    )
    async def _(request: Request, job: str, name: str) -> Response:
        """A file of a finished job, or its input (before.f32)."""
        jobs: Jobs = request.app.state.jobs
        return await _file(jobs, jobs.find(job), name)

    @app.get("/healthz", operation_id="health", responses=_errors(403, 503))
    async def _(request: Request) -> Health:
        """Whether the service answers, and how much it has to do."""
        jobs: Jobs = request.app.state.jobs
        return Health(status="ok", **jobs.count())


def _add_page(app: FastAPI) -> None:
    @app.get("/v1/about", operation_id="about", responses=_errors(401, 403, 503))
    async def _(request: Request) -> dict[str, Any]:
        """The choices there are, and the limits."""
        limits: Limits = request.app.state.limits
        return {
            "version": version("sparsedepth"),
            "profiles": forms.PROFILE_NAMES,
            "qualities": forms.QUALITIES,
            "default_quality": forms.DEFAULT_QUALITY,
            "dictionaries": Dictionary.builtins(),
            "maps": sorted(forms.MAPS),
            "photos": sorted(forms.PHOTOS),
            "examples": {"maps": examples.MAPS, "pairs": examples.PAIRS},
            "products": {name: product.label for name, product in PRODUCTS.items()},
            "limits": {"bytes": limits.bytes, "pixels": limits.pixels, "job_seconds": limits.job_seconds},
        }

    @app.get("/", include_in_schema=False)
    async def _() -> Response:
        return _asset("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def _(name: str) -> Response:
        return _asset(name)


def _asset(name: str) -> Response:
    if name == "plotly.js":
        return Response(_plotly(), media_type=TYPES[".js"], headers={"cache-control": "max-age=3600"})
    if name == "colours.json":
        return JSONResponse(_colours())
    if name not in {file.name for file in _page().iterdir()}:
        raise Refusal(404, "there is nothing at this address")
    return Response((_page() / name).read_bytes(), media_type=TYPES[Path(name).suffix])


def _page() -> Any:
    return resources.files("sparsedepth.serve") / "page"


@cache
def _plotly() -> bytes:
    return (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()


@cache
def _colours() -> dict[str, Any]:
    """The scales and colours of our other pictures, as the page needs them."""
    from matplotlib import colormaps

    from sparsedepth.pictures import ORIGINS, UNKNOWN

    scales = {
        name: (colormaps[name](range(256), bytes=True)[:, :3]).tolist() for name in ("viridis", "bone", "gray", "PuOr")
    }
    return {"scales": scales, "origins": ORIGINS, "unknown": UNKNOWN}
