"""What is trained and compared: the scheme behind a criterion, and how it is counted.

A *scheme* is a list of trainings and of comparisons. A *comparison* says which two
models answer a row of the pool, or which model and which known label, and in which bin
a difference is counted. Counts are the same however rows are divided.

To add a scheme: a function like those of `schemes`, and a criterion that reads its
counts.
"""
