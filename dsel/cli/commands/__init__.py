"""Options and help of each command; importing them takes no time.

The function that a command runs is in the file of the same name one folder above.
"""
