"""Print the sentences that the stored results contradict: `python -m book.prose`."""

from . import is_contradicted, verdicts


def main() -> None:
    """Print a line for each contradicted sentence, starting with its file."""
    for verdict in verdicts():
        if is_contradicted(verdict):
            print(f'book/{verdict.chapter}.md, contradicted by results: "{verdict.sentence}"')


if __name__ == "__main__":
    main()
