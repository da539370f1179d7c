"""Background-worker fleet for IoT SIM-card management platforms."""

from importlib.metadata import version

__version__ = version("junhong-cmp")
