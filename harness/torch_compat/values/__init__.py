"""Recorded values: their form, differences between two of them, and the dtypes of torch.

* :mod:`torch_compat.values.dtypes`: the dtypes of torch, with all their names and numbers
* :mod:`torch_compat.values.form`: the neutral form and its grammar
* :mod:`torch_compat.values.compare`: where two results differ, and by how much
* :mod:`torch_compat.values.delta`: a value as its departures from another
* :mod:`torch_compat.values.normalise`: texts of releases in a form that is comparable between machines and runs
"""
