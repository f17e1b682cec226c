"""Print the sentences that the stored results contradict: `python -m book.prose`."""

from . import is_contradicted, verdicts


def main() -> None:
    """A line for each sentence to be written again, after the file that it stands in."""
    for verdict in verdicts():
        if is_contradicted(verdict):
            print(f'book/{verdict.chapter}.md, contradicted by results: "{verdict.sentence}"')


if __name__ == "__main__":
    main()
