"""The program of a worker process of the service: run tasks, and put their failures into sentences for users."""

from __future__ import annotations

import os
import traceback
import warnings
from typing import Any

from numpy.typing import NDArray

from sparsedepth.input_warnings import InputWarning
from sparsedepth.messages import Header, Message
from sparsedepth.process_pool import Answer, Report
from sparsedepth.serve import compute
from sparsedepth.vocabulary import InputError, TooLargeError


def worker_entry(setup: Header, _arrays: dict[str, NDArray[Any]]) -> Answer:
    """Return the function that answers the tasks of the service."""
    warnings.simplefilter("ignore", InputWarning)  # answers carry them
    if setup["warm"]:
        compute.warm_up()

    def answer(task: Header, _arrays: dict[str, NDArray[Any]], report: Report) -> Message:
        return _attempt(task, lambda stage: report({"stage": stage})), {}

    return answer


def _attempt(task: dict[str, Any], report: compute.Report) -> dict[str, Any]:
    shown = task.pop("shown", {})
    try:
        return {"done": compute.TASKS[task.pop("do")](report=report, **task)}
    except InputError as error:
        status = 413 if isinstance(error, TooLargeError) else 422
        return {"status": status, "sentence": _with_names(str(error), task["folder"], shown)}
    except MemoryError:
        return {"status": 503, "sentence": "there is not enough memory for this; send a smaller map"}
    except Exception as error:  # the service goes on; the operator reads where, the user what
        traceback.print_exc()
        return {"status": 500, "sentence": f"a mistake in sparsedepth ({type(error).__name__}); please report it"}


def _with_names(sentence: str, folder: str, shown: dict[str, str]) -> str:
    """Put the user's names of files into a sentence of the library, and leave out names of its parameters."""
    sentence = sentence.replace(os.path.join(folder, ""), "")
    for stored, name in shown.items():
        sentence = sentence.replace(stored, name)
    return sentence.replace(" (most_pixels)", "").replace(" (most_bytes)", "")
