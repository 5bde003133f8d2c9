"""Options and help of each command; importing them takes no time.

The function that `commands/select_command.py` runs is in `run_select.py`, one folder
above.
"""
