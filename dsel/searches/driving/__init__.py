"""The driver: a loop that submits fits and spans, takes counts, prunes and records.

`run.Driver` is the loop; `fitting.Fitting` and `scoring.Scoring` submit its two kinds
of tasks and take what they counted; `tasks` is what runs on a worker. The *board* holds
the counts so far, the *referee* says who may still win, `journaling` writes them down.
What depends on time or place stays in this room: counts do not.
"""
