"""What the reference reader says of every release, against what that release is recorded to have done; see ``__main__.py``."""
