"""How many examples hypothesis draws. Apart from helpers.py, which a bare GPU machine imports."""

from hypothesis import settings

FAST = settings.default.max_examples < 100  # `make fast`, see conftest.py


def examples(count, **options):
    """Settings for so many examples; a tenth of them in the fast profile."""
    return settings(max_examples=max(2, count // 10) if FAST else count, **options)
