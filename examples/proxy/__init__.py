"""The example proxy: Messages clients over a Chat upstream, on aiohttp."""
