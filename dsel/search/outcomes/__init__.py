"""The result of a search, and functions that apply its models.

`outcome` has cube, choice and models; `deployed_model` has one of the models, with the
format of its rows. `predict_table` and `predict_pool` predict all rows of a table or a
pool, `intervals` adds the certified tolerance to predicted numbers, and `monitor` tests
on a new table whether promises still hold; `table_rows` reads the tables.
"""
