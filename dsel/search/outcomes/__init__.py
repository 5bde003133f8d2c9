"""The result of a search, and what is done with its models afterwards.

`outcome` is cube, choice and models. `predict_table` and `predict_pool` predict all
rows of a table or a pool, `intervals` adds the certified tolerance to predicted
numbers, and `monitor` checks whether a promise is about the rows of a new table.
"""
