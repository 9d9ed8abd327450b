"""A proxy on aiohttp: Messages clients over a Chat or a Responses upstream."""
