"""The audit: how often certificates are wrong where the truth is known.

`laws` has populations whose error rates are sums, and learners that cost nothing;
`settings` says what is searched and how; `audit` draws, searches and counts.
"""
