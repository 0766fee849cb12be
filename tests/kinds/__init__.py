"""Checkpoints as real libraries write them, loaded in real releases by the calls that `torch-compat inspect` names."""
