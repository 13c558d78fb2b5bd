"""Restore a map whose patches are coded in narrow bands: a matter of memory, so it is no option of the package."""

from __future__ import annotations

from dataclasses import replace

from sparsedepth import Dictionary, Restoration
from sparsedepth.parallel import one_blas_thread
from sparsedepth.restore import METHODS, Settings
from sparsedepth.tiling import TiledMap
from sparsedepth.vocabulary import DepthMap


def denoise_in_bands(
    depth: DepthMap, band: int, *, method: str, quality: str, threads: int, dictionary: Dictionary | None = None
) -> Restoration:
    """Do what `denoise` does, with so many patches coded at once."""
    settings, chosen = Settings(), METHODS[method]
    coder = replace(chosen.patch_coder(dictionary, quality, settings), band=band)
    source = TiledMap.from_array(depth, None, coder.dictionary.patch_shape, None, settings.tiling)
    with one_blas_thread:
        fitted = chosen.fit(source.sample, coder, settings, correct=True, fill=True, second_pass=False, threads=threads)
        return source.run(fitted, None, threads)
