"""The result of a search, and functions that apply its models.

`outcome` has the cube, the queried rows, and what users call: tables of predictions,
tests of new rows, saving. `certified_models`, its base, has what needs only choice and
models: certificates, reports, and predictions of rows in memory. `outcome_texts` prints
an outcome, and `missing_attributes` says what has an attribute that it lacks.

`deployed_model` has one of the models, with the format of its rows. `predict_table` and
`predict_pool` predict all rows of a table or a pool, `intervals` adds the certified
tolerance to predicted numbers, and `monitor` tests on a new table whether `promises`
still hold; `table_rows` reads the tables.
"""
