"""Trainshed: custom model training on machines you own, through the API you already use."""

__version__ = "0.5.0"
