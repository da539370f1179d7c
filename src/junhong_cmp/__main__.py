"""The program's entry: signals first, everything that takes time to import after."""

from junhong_cmp.cli.signals import StopSignals


def main() -> int:
    """Run the ``junhong`` command; return its exit code."""
    signals = StopSignals()
    signals.install()
    from junhong_cmp.cli.app import run  # noqa: PLC0415 - a signal during this import must already find its handler

    return run(signals)


if __name__ == "__main__":
    raise SystemExit(main())
