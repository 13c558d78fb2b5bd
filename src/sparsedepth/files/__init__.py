"""Read and write depth and disparity maps in the files of cameras and data sets.

In memory a map is float32 with NaN where nothing is known, and has a unit and a kind. Headers are read before pixels:
a file that declares more than the budget is refused before memory is allocated. Nothing is unpickled. A format is an
entry in `FORMATS`, an encoding one in `PROFILES`.
"""

from sparsedepth.files.colmap import read_normals, write_normals
from sparsedepth.files.confidence import confidence_variance, read_confidence
from sparsedepth.files.formats import FORMATS, Format
from sparsedepth.files.numpy_arrays import read_about
from sparsedepth.files.photos import read_photo
from sparsedepth.files.profiles import PROFILES
from sparsedepth.files.reading import MOST_BYTES, MOST_PIXELS, read, read_array, read_map
from sparsedepth.files.writing import write, write_array
from sparsedepth.vocabulary import DepthImage, Profile

__all__ = [
    "FORMATS",
    "MOST_BYTES",
    "MOST_PIXELS",
    "PROFILES",
    "DepthImage",
    "Format",
    "Profile",
    "confidence_variance",
    "read",
    "read_about",
    "read_array",
    "read_confidence",
    "read_map",
    "read_normals",
    "read_photo",
    "write",
    "write_array",
    "write_normals",
]
