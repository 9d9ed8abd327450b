"""`answer`: one recorded whole answer becomes what a client of another dialect would have received."""

import argparse

from pipeline.cli.convert import arguments, convert
from pipeline.cli.options import Command, Recipe
from pipeline.reply import Form


def answer(args: argparse.Namespace, recipe: Recipe) -> int:
    """Run the command, which is `convert` for whole bodies."""
    return convert(args, recipe, Form.WHOLE)


COMMAND = Command("turn a recorded whole answer into another dialect's", arguments, answer)
