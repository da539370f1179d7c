"""The documents' commands are tried on the platform of the scenarios."""

from tests.scenarios.conftest import platform

__all__ = ["platform"]
