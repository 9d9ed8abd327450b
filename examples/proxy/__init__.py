"""A proxy on aiohttp: clients of Messages, Chat and Responses over one upstream of any of them."""
