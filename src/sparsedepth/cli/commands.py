"""The commands by name. This module imports nothing of the package: the build reads it for the man page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A command of the application: the module that holds it, and the first paragraph of its help."""

    module: str
    help: str


COMMANDS = {
    "denoise": Entry("denoise", "Correct noisy pixels and fill holes, with a variance and an origin for each pixel."),
    "inpaint": Entry(
        "denoise",
        "Fill holes and leave what was measured as it is; options, files and exit codes are those of denoise.",
    ),
    "match": Entry(
        "match",
        "Match two rectified views: disparities of the left view, their variances and origins.",
    ),
    "calibrate": Entry("calibrate", "Measure the noise of a depth camera from at least five frames of a static scene."),
    "stream": Entry("stream", "Restore the frames of a depth camera, using the frames before."),
    "cloud": Entry(
        "cloud",
        "Write a depth map as points in space, with normals, standard deviations along the rays, origins and colours.",
    ),
    "show": Entry(
        "show",
        "Draw a map in colours, with a scale bar in its unit; pixels of which nothing is known stand out.",
    ),
    "evaluate": Entry(
        "evaluate",
        "Measure how far a result is from the truth, and whether its variances are right (calibration 1 = they are).",
    ),
    "report": Entry(
        "report",
        "Write pictures, numbers and settings of results as one HTML file that opens from disk, without a network.",
    ),
    "learn": Entry(
        "learn",
        "Learn a dictionary of depth patches. After an interruption, --resume gives the same dictionary.",
    ),
    "dictionary": Entry("dictionary", "Say what a dictionary is and where it comes from; draw it."),
    "demo": Entry(
        "reproduce",
        "Restore a real map with real holes and added noise, compare with other methods, and write a report.",
    ),
    "reproduce": Entry(
        "reproduce",
        "Repeat an experiment of the paper and write its table and pictures, and all of them as one report.html.",
    ),
    "serve": Entry(
        "serve",
        "Serve a page to look at maps, and the same over HTTP for programs; results are kept for a quarter of an hour.",
    ),
    "doctor": Entry(
        "doctor",
        "Say which versions and extras are installed and which kernels run, and test that restoring works.",
    ),
}
"""Name -> where its function is: ``name_command`` in the module. A test compares the help with the function's own."""
