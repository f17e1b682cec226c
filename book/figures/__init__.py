"""The book's figures and the numbers in its prose, one module an experiment."""
