"""Values as they are recorded: their form, what differs between two of them, and the dtypes of torch.

* :mod:`torch_compat.values.dtypes`: the dtypes of torch, by all their names and numbers
* :mod:`torch_compat.values.form`: the neutral form and its grammar
* :mod:`torch_compat.values.compare`: where two results differ, and by how much
* :mod:`torch_compat.values.delta`: one value as its departures from another
* :mod:`torch_compat.values.normalise`: texts of releases, comparable between machines and runs
"""
