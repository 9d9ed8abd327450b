"""What Python translators do with the fixtures, side by side with ours: `make compared` writes `docs/compared.md`.

The other translators live in an environment of their own, each answers in a subprocess over a loopback upstream that
replays a fixture. What comes out is read by strict readers that owe our stages nothing (`read_*.py`) and held against
what the fixture's golden says (`verdict.py`).
"""
