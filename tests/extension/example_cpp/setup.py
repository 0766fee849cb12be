"""Builds the extensions of this folder with the torch that runs it: python setup.py NAME build_ext --build-lib FOLDER --build-temp FOLDER."""

import sys

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

NAME = sys.argv.pop(1)
RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
MACROS = [("KEY_OF_1_4", None)] if RELEASE < (1, 5) else []


class Build(BuildExtension):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, use_ninja=False, no_python_abi_suffix=True, **kwargs)


setup(
    name=NAME,
    ext_modules=[CppExtension(NAME, [NAME + ".cpp"], define_macros=MACROS, extra_compile_args=["-O1", "-w"])],
    cmdclass={"build_ext": Build},
)
