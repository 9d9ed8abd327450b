"""The proxy's routes on plain TCP, on asyncio and trio: HTTP by h11, the upstream by httpx."""
