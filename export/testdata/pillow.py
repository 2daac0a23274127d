# Reads images with the code in docs/export.md and compares the pixels with Pollen's.
# usage: pillow.py export.md pixels.raw image... ; pixels.raw has [image 3 224 224] bytes
import sys

import numpy, PIL.Image, PIL.ImageOps

page = open(sys.argv[1]).read()
start = page.index("    import numpy, PIL.Image")
snippet = "\n".join(line[4:] for line in page[start:].split("\n\n")[0].splitlines())
want = numpy.fromfile(sys.argv[2], dtype=numpy.uint8).reshape(-1, 3, 224, 224)
for path, pixels in zip(sys.argv[3:], want, strict=True):
    names = {"path": path}
    exec(snippet, names)
    error = abs(names["images"][0].astype(int) - pixels).max()
    assert error <= 2, f"{path}: pixels differ by up to {error} grey levels, want at most 2"
    print(path, "differs by at most", error)
