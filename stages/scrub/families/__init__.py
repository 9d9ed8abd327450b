"""The families of markup, one file each: which tokens, and how they are read. Where two know an opener, the first one
that does not refuse it reads it."""

from stages.scrub.families import deepseek, hermes, think
from stages.scrub.grammar import Family

FAMILIES: tuple[Family, ...] = (*think.FAMILIES, *hermes.FAMILIES, *deepseek.FAMILIES)
