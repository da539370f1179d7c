"""Background-worker fleet for IoT SIM-card management platforms."""
