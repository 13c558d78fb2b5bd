"""The demo on a real map that needs no download."""

from __future__ import annotations

from sparsedepth import experiments


def test_demo_writes_its_pictures_and_removes_noise(tmp_path):
    told = []
    facts = experiments.load("demo").run(tmp_path, lambda *what: told.append(what), quick=True)
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"mosaic.png", "original.png", "noisy.png", "coded.png", "variance.png"}
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in names)
    assert facts["rmse_coded_px"] < 0.75 * facts["rmse_noisy_px"]
    assert told[-1][0] == "coding the noisy map"
