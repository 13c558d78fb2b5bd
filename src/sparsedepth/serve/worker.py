"""The main program of a `WorkerProcess`: read a task, run it, answer. It ends when the server does."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import Any

from sparsedepth.serve import compute
from sparsedepth.vocabulary import InputError, TooLargeError


def main() -> None:
    """Run tasks until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    waiting: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(waiting,), daemon=True).start()

    def answer(**said: Any) -> None:
        answers.write(json.dumps(said) + "\n")

    if "--warm" in sys.argv[1:]:
        compute.warm_up()
    answer(stage="ready")
    while True:
        task = waiting.get()
        answer(**_attempt(task, lambda stage: answer(stage=stage)))


def _listen(waiting: SimpleQueue[dict[str, Any]]) -> None:
    """Read tasks in the background: the end of the server ends this process in the middle of its work."""
    for line in sys.stdin:
        waiting.put(json.loads(line))
    os._exit(0)


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


if __name__ == "__main__":
    main()
