"""A stand-in of TorchRL."""

__version__ = "0.14"
