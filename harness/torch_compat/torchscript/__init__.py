"""The two readers of TorchScript source (of archives and upgraders), and the representation of calls.

* :mod:`torch_compat.torchscript.parser`: the syntax tree of a file or of one expression, with positions; for code that compiles, checks or
  changes source
* :mod:`torch_compat.torchscript.scanner`: the information that ``inspect`` needs, in one pass over the tokens and without a tree
* :mod:`torch_compat.torchscript.calls`: a call of an operator
"""
