"""Fuzz one reader, guided by coverage: ``python fuzzing/fuzz.py png FOLDER [libFuzzer's options]``.

The folder keeps the files that reached something new. A file that breaks a law is left as ``crash-...`` and ends the
run; ``fuzzing/run.py`` starts it again and counts.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
READERS = ["sparsedepth", "PIL", "tifffile", "zipfile", "numpy.lib", "safetensors"]
with atheris.instrument_imports(include=READERS, enable_loader_override=False):
    import reading_laws
    from mutators import mutator_of
    from seeds import seeds


def main() -> None:
    name, corpus = sys.argv[1], Path(sys.argv[2])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(content)
    law, mutate = reading_laws.law_of(name), mutator_of(name)
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    path = folder / f"x{reading_laws.suffix_of(name)}"

    def one_input(content: bytes) -> None:
        path.write_bytes(content)
        law(path)

    def changed(content: bytes, largest: int, seed: int) -> bytes:
        rng = random.Random(seed)

        def change(part: bytes) -> bytes:
            return atheris.Mutate(part or b"\0", max(len(part) + 64, 128))

        try:
            result = mutate(content, change, rng) if rng.random() < 0.6 else atheris.Mutate(content, largest)
        except Exception:  # it has lost its form
            result = atheris.Mutate(content, largest)
        return result[:largest]

    atheris.Setup([sys.argv[0], *sys.argv[3:], str(corpus)], one_input, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
