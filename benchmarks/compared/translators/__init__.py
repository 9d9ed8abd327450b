"""One file a translator: which pairs it offers, and its door.

They run in the environment of the other translators, so whatever they need of it they import when they are first asked.
"""
