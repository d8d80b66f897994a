"""Bridgehead where another program starts servers: gunicorn.

Invariant: what is here imports that program, and nothing else imports what is here.
"""
