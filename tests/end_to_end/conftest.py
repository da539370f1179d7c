"""End-to-end tests play on the platform of the scenarios."""

from tests.scenarios.conftest import platform

__all__ = ["platform"]
