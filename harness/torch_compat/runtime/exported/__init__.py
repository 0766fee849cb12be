"""Exported programs (``torch.export``): their graphs, run with numpy.

:func:`torch_compat.runtime.load.load` gives an :class:`~torch_compat.runtime.exported.program.ExportedModule` for such an archive. What the
records hold is specified in :mod:`torch_compat.formats.export_pt2` and :mod:`torch_compat.formats.export_plain`; what the JSON of a
program says, in :mod:`torch_compat.runtime.exported.document`.
"""
