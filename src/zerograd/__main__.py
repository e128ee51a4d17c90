"""`python -m zerograd` is the command `zerograd`."""

from zerograd.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
