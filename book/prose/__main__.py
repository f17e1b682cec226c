"""Print the sentences that the stored results contradict: `python -m book.prose`."""

from . import BOOK, is_contradicted, source, verdicts


def main() -> None:
    """Print a line for each contradicted sentence, starting with its file."""
    for verdict in verdicts():
        if is_contradicted(verdict):
            file = (source(verdict) or BOOK).relative_to(BOOK.parent)
            print(f'{file}, contradicted by results: "{verdict.sentence}"')


if __name__ == "__main__":
    main()
