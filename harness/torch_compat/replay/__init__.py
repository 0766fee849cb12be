"""Plan, produce, observe and record: everything that needs a running reader."""
