"""Bridgehead where another program starts servers: gunicorn, Django, Litestar.

Invariant: what is here imports that program, and nothing else imports what is here.
"""
