"""Operators and names of PyTorch across releases: what every release has, as recorded from the releases themselves.

:mod:`torch_compat.operators.history` reads the recorded histories, :mod:`torch_compat.operators.call_signature` the parts of a schema that
matter to a call. :mod:`torch_compat.operators.schema` and :mod:`torch_compat.operators.types` cover the whole grammar,
:mod:`torch_compat.operators.compatibility` PyTorch's rules for pairs of schemas, :mod:`torch_compat.operators.changes` their results for
two releases.
This package uses only the standard library and imports quickly, so that it does not delay the inspection of small archives.
"""
