"""The routes of the service: four tasks, their jobs and products, the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from sparsedepth.dictionary import Dictionary
from sparsedepth.restore import QUALITIES
from sparsedepth.serve import examples, forms
from sparsedepth.serve.assets import asset
from sparsedepth.serve.guard import Guard, error_response
from sparsedepth.serve.limits import HTTPError, Limits
from sparsedepth.serve.products import OCTETS, PRODUCTS, RAW, STREAM_PRODUCTS
from sparsedepth.serve.queue import Job, JobQueue, finished
from sparsedepth.serve.schemas import (
    MAP_FILE,
    PRODUCT_FILE,
    TASK_ERRORS,
    Answer,
    Facts,
    FrameNumber,
    Health,
    JobAnswer,
    errors,
)
from sparsedepth.serve.uploads import FRAMES, receive

CHUNK_BYTES = 1 << 18
TASKS: dict[str, type[forms.Form]] = {
    "denoise": forms.DenoiseForm,
    "inpaint": forms.InpaintForm,
    "stream": forms.StreamForm,
    "match": forms.MatchForm,
}


def make_app(limits: Limits, *, token: str | None = None, hosts: Collection[str] | None = None) -> FastAPI:
    """Make the application; it answers to ``hosts`` only, and to clients that give the token."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with JobQueue(limits) as jobs:
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
    _handle_errors(app)
    _add_tasks(app)
    _add_jobs(app)
    _add_page(app)
    return app


def _handle_errors(app: FastAPI) -> None:
    """Answer every error with one sentence."""

    @app.exception_handler(HTTPError)
    async def _(request: Request, error: HTTPError) -> Response:
        return error_response(error)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> Response:
        return error_response(HTTPError(422, forms.sentence(error.errors())))

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> Response:
        sentence = "there is nothing at this address" if error.status_code == 404 else error.detail
        return JSONResponse({"error": sentence}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def _(request: Request, error: Exception) -> Response:
        return error_response(HTTPError(500, f"a mistake in sparsedepth ({type(error).__name__}); please report it"))


def _add_tasks(app: FastAPI) -> None:
    for what, form in TASKS.items():
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
        jobs: JobQueue = request.app.state.jobs
        job = jobs.admit(what)
        try:
            await _accept(request, jobs, job, form)
        except BaseException:
            jobs.forget(job)
            raise
        if answer == "links":
            return JSONResponse(_job_answer(jobs, job).model_dump(), 202, {"location": f"/v1/jobs/{job.id}"})
        try:
            await finished(job, _gone(request))
            if job.failure is not None:
                raise job.failure
            return await _file(jobs, job, f"{'stream' if what == 'stream' else 'result'}.{answer}")
        finally:
            jobs.forget(job)

    return endpoint


async def _accept(request: Request, jobs: JobQueue, job: Job, form: type[forms.Form]) -> None:
    """Receive the upload, check its options, decode it, and queue the job."""
    files = forms.FILES[form]
    upload = await receive(request, job.folder, jobs.limits, files | forms.FURTHER_FILES[form])
    given = forms.parse(form, upload.texts)
    if given.example is not None and (upload.files or upload.frames):
        raise HTTPError(422, "send a file or name an example, not both")
    missing = [name for name in files if name not in upload.files and not (name == FRAMES and upload.frames)]
    if given.example is None and missing:
        raise HTTPError(422, f"the form lacks {' and '.join(missing)}: send a file, or name an example")
    example = {"do": "example", "name": given.example}
    task = example if given.example is not None else given.task(upload) | {"limits": jobs.limits.of_maps()}
    await jobs.decode(job, task, upload.shown)
    options = given.options()
    jobs.enqueue(job, {"do": job.what, "options": options}, (job.what, *map(str, options.values())))


async def _gone(request: Request) -> None:
    """Wait until the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _job_answer(jobs: JobQueue, job: Job) -> JobAnswer:
    place = f"/v1/jobs/{job.id}"
    there = [] if not job.facts else ["before.f32"]
    if job.state == "done":
        there += [*list(RAW)[1:], *PRODUCTS, *(STREAM_PRODUCTS if job.what == "stream" else ())]
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


async def _file(jobs: JobQueue, job: Job, name: str, frame: int | None = None) -> Response:
    """Stream a product of a job; it may expire meanwhile, since the file is open."""
    path, part = await jobs.product(job, name, frame)
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed when sent)
        size = path.stat().st_size if part is None else len(part)
    except FileNotFoundError:
        raise HTTPError(404, "the job has expired") from None

    async def pieces() -> AsyncIterator[bytes]:
        left = size
        with file:
            file.seek(0 if part is None else part.start)
            while piece := file.read(min(CHUNK_BYTES, left)):
                left -= len(piece)
                yield piece

    headers = {"content-length": str(size), "content-disposition": f'attachment; filename="{name}"'}
    media = (PRODUCTS | STREAM_PRODUCTS)[name].media if name not in RAW else OCTETS
    return StreamingResponse(pieces(), media_type=media, headers=headers)


def _add_jobs(app: FastAPI) -> None:
    gone = errors(401, 403, 404, 422, 503)

    @app.get("/v1/jobs/{job}", responses=gone, operation_id="job")
    async def _(request: Request, job: str) -> JobAnswer:
        """Return the state of a job, and links to its results."""
        jobs: JobQueue = request.app.state.jobs
        return _job_answer(jobs, jobs.find(job))

    @app.delete("/v1/jobs/{job}", status_code=204, responses=gone, operation_id="forget")
    async def _(request: Request, job: str) -> None:
        """Stop a job, or remove its results."""
        jobs: JobQueue = request.app.state.jobs
        jobs.forget(jobs.find(job))

    @app.get(
        "/v1/jobs/{job}/{name}",
        response_model=None,
        responses=gone | errors(409, 413, 500) | {200: {"content": PRODUCT_FILE}},
        operation_id="product",
    )
    async def _(request: Request, job: str, name: str, frame: FrameNumber = None) -> Response:
        """Return a file of a finished job, or its input (before.f32); of a stream, that of one frame."""
        jobs: JobQueue = request.app.state.jobs
        return await _file(jobs, jobs.find(job), name, frame)

    @app.get("/healthz", operation_id="health", responses=errors(403, 503))
    async def _(request: Request) -> Health:
        """Return that the service answers, and its load."""
        jobs: JobQueue = request.app.state.jobs
        return Health(status="ok", **jobs.count())


def _add_page(app: FastAPI) -> None:
    @app.get("/v1/about", operation_id="about", responses=errors(401, 403, 503))
    async def _(request: Request) -> dict[str, Any]:
        """Return all choices of options, and the limits."""
        limits: Limits = request.app.state.limits
        return {
            "version": version("sparsedepth"),
            "profiles": forms.PROFILE_NAMES,
            "qualities": QUALITIES,
            "default_quality": forms.DEFAULT_QUALITY,
            "dictionaries": Dictionary.builtins(),
            "sensors": forms.SENSOR_NAMES,
            "sides": forms.SIDES,
            "maps": sorted(forms.MAPS),
            "photos": sorted(forms.PHOTOS),
            "streams": sorted(forms.STREAMS - forms.MAPS),
            "stream_qualities": forms.STREAM_QUALITIES,
            "calibrations": sorted(forms.CALIBRATIONS),
            "examples": {"maps": examples.MAPS, "pairs": examples.PAIRS, "streams": examples.STREAMS},
            "example_sensors": examples.SENSORS,
            "products": {name: product.label for name, product in PRODUCTS.items()},
            "stream_products": {name: product.label for name, product in STREAM_PRODUCTS.items()},
            "limits": {
                "bytes": limits.bytes,
                "pixels": limits.pixels,
                "frames": limits.frames,
                "job_seconds": limits.job_seconds,
            },
        }

    @app.get("/", include_in_schema=False)
    async def _() -> Response:
        return asset("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def _(name: str) -> Response:
        return asset(name)
