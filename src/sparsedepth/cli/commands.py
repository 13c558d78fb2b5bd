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
    "stream": Entry("stream", "Restore the frames of a depth camera over time."),
    "cloud": Entry(
        "cloud",
        "Write a depth map as points in space, with normals, standard deviations along the rays, origins and colours.",
    ),
    "show": Entry(
        "show",
        "Draw a map in colours, with a scale bar in its unit; missing pixels have a colour of their own.",
    ),
    "evaluate": Entry(
        "evaluate",
        "Compare a result with the ground truth: errors, and the calibration of its variances (1 = calibrated).",
    ),
    "report": Entry(
        "report",
        "Write pictures, numbers and settings of results as one HTML file that opens from disk, without a network.",
    ),
    "learn": Entry(
        "learn",
        "Learn a dictionary of depth patches. After an interruption, --resume gives the same dictionary.",
    ),
    "dictionary": Entry(
        "dictionary", "Print the size, the settings and the source of a dictionary, or draw its atoms."
    ),
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
        "Start a web page and an HTTP service that restore maps; results are kept for 15 minutes.",
    ),
    "doctor": Entry(
        "doctor",
        "Print the installed versions, extras and kernels, and test that restoring works.",
    ),
}
"""Name -> where its function is: ``name_command`` in the module. A test compares the help with the function's own."""
