"""Exported programs (``torch.export``): their graphs, run with numpy.

:func:`torch_compat.runtime.load.load` returns an :class:`~torch_compat.runtime.exported.program.ExportedModule` for such an archive. The
records are specified in :mod:`torch_compat.formats.export_pt2` and :mod:`torch_compat.formats.export_plain`; the JSON of a program, in
:mod:`torch_compat.runtime.exported.document`.
"""
