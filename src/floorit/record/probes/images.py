"""Which functions work on images: OpenCV's, PIL's, numpy's and torchvision's, and what is to be known of a call."""

from functools import partial

from ..imports import after_import
from ..operations import NAME, path_of

_FLAGS_OF_WARPS, _MATRIX = (4, "flags"), (1, "M")
# function of cv2 -> (position, name) of its first picture, and of what tells its calls apart
_CV2 = {
    "imread": ((0, "filename"), (1, "flags")),
    "imdecode": ((0, "buf"), (1, "flags")),
    "imencode": ((1, "img"), (0, "ext")),
    "resize": ((0, "src"), (5, "interpolation")),
    "warpAffine": ((0, "src"), _FLAGS_OF_WARPS),
    "warpPerspective": ((0, "src"), _FLAGS_OF_WARPS),
    "remap": ((0, "src"), (3, "interpolation")),
    "cvtColor": ((0, "src"), (1, "code")),
    "GaussianBlur": ((0, "src"), (1, "ksize")),
    "copyMakeBorder": ((0, "src"), (5, "borderType")),
    "LUT": ((0, "src"), None),
}
_IMAGE = "PIL.Image.Image."


def install(session):
    operations = session.operations
    operations.time_c("cv2", {name: partial(_describe, *how) for name, how in _CV2.items()})
    operations.time_c("numpy", {"fromfile": partial(_describe, (0, "file"), None)})
    after_import("numpy", lambda numpy: _watch_numpy(session, numpy))
    after_import("PIL.Image", lambda image: _watch_pil(session, image))
    after_import("PIL.ImageFile", lambda module: _watch_decoding(session, module))
    after_import("torchvision.io.image", lambda module: _watch_torchvision(session, module))


def _try(session, function, *how, **more):
    """A version of the library that is written otherwise is left alone."""
    try:
        session.operations.time_python(function, *how, **more)
    except Exception as error:
        session.missing("%s of %s" % (NAME, how[0]), repr(error))


def _describe(picture, flag, args, kwargs, value):
    """What tells the call apart, its size, and more."""
    first, more = _argument(picture, args, kwargs), {}
    shape = getattr(first, "shape", None)
    if shape is None:
        more["file"] = path_of(first)
    if flag == _FLAGS_OF_WARPS:
        more["matrix"] = _argument(_MATRIX, args, kwargs)
    dtype = getattr(value if shape is None else first, "dtype", None)
    given = None if flag is None else _argument(flag, args, kwargs)
    return _plain(given), (shape, dtype, getattr(value, "shape", None)), more


def _argument(where, args, kwargs):
    position, name = where
    return args[position] if len(args) > position else kwargs.get(name)


def _plain(flag):
    if isinstance(flag, (list, tuple)):
        return tuple(flag)
    return flag if isinstance(flag, (int, str)) else None


def _watch_numpy(session, numpy):
    def describe(file):
        return None, (None, None, None), {"file": path_of(file)}

    _try(session, numpy.load, "numpy.load", ("file",), describe, whole=True)


def _watch_pil(session, image):
    def describe_open(file):
        return None, (None, None, None), {}

    def describe_convert(picture, mode):
        return _plain(mode), (_shape(picture), picture.mode, None), {}

    def describe_resize(picture, size, resample):
        return _plain(resample), (_shape(picture), picture.mode, tuple(map(int, size))[::-1]), {}

    own = image.Image
    _try(session, image.open, "PIL.Image.open", ("fp",), describe_open)
    _try(session, own.convert, _IMAGE + "convert", ("self", "mode"), describe_convert)
    _try(session, own.resize, _IMAGE + "resize", ("self", "size", "resample"), describe_resize)
    _try(session, own.transform, _IMAGE + "transform", ("self", "size", "resample"), describe_resize)


def _watch_decoding(session, module):
    def describe(picture):
        if not getattr(picture, "tile", None):
            return None  # it is decoded already
        file = vars(picture).get("filename") or vars(picture).get("fp")
        return picture.format, (None, picture.mode, _shape(picture)), {"file": path_of(file)}

    _try(session, module.ImageFile.load, "PIL.ImageFile.ImageFile.load", ("self",), describe)


def _shape(picture):
    """As an array would have it."""
    width, height = picture.size
    return height, width, len(picture.getbands())


def _watch_torchvision(session, module):
    def describe_data(data):
        return None, (tuple(data.shape), data.dtype, None), {}  # of a list of them, nothing

    def describe_file(path):
        return None, (None, None, None), {"file": path_of(path)}

    for name in ("decode_jpeg", "decode_png", "decode_image"):
        if hasattr(module, name):
            _try(session, getattr(module, name), "torchvision.io." + name, ("input",), describe_data)
    _try(session, module.read_file, "torchvision.io.read_file", ("path",), describe_file)
