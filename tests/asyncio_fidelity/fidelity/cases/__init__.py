"""The cases, by subject.

Invariant: a case looks at no clock, so that a busy machine changes no account.
"""
