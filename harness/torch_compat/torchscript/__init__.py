"""TorchScript text, as archives hold it and upgraders are written: the two readers of it, and what a call is.

* :mod:`torch_compat.torchscript.parser`: the syntax tree of a file or of one expression, with positions; for everybody who compiles, checks or
  changes source
* :mod:`torch_compat.torchscript.scanner`: what ``inspect`` asks of source, in one pass over its marks and without a tree
* :mod:`torch_compat.torchscript.calls`: a call of an operator
"""
