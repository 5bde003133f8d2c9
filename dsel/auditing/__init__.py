"""The audit counts how often certificates are wrong where the truth is known.

`populations` has populations whose error rates are sums, and learners that fit in no
time; `settings` lists what is searched and how; `audit` draws, searches and counts.
"""
