"""Builds the compiled body of linear attention for CPUs; all else stands in pyproject.toml.

It is plain C behind ctypes, not a Python module. Without a compiler that takes it the package
installs all the same. `make` builds it in place: python setup.py build_ext --inplace. An editable
installation would compile it once more; WITHOUT_BODY leaves it out of that.
"""

import os
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

FOLDER = "lsa/attention/compiled"
SOURCES = [f"{FOLDER}/body.cpp", f"{FOLDER}/kernel.inl"]
DIGEST = sha256(b"".join(Path(name).read_bytes() for name in SOURCES)).hexdigest()

BODY = Extension(
    "lsa.attention.compiled.body",
    SOURCES[:1],
    depends=SOURCES[1:],
    # One that other sources made is not loaded.
    define_macros=[("SOURCES", f'"{DIGEST}"')],
    # Contraction makes multiply-adds of products and sums; nothing else is loosened.
    extra_compile_args=["-std=c++17", "-O3", "-ffp-contract=fast", "-fno-math-errno"],
    optional=True,
)

setup(ext_modules=[] if os.environ.get("WITHOUT_BODY") else [BODY])
