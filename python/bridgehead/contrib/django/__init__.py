"""`manage.py runserver` on Bridgehead: `"bridgehead.contrib.django"` before all others in INSTALLED_APPS.

Not for production: `serve project.asgi:application` is.

Invariant: without that line, nothing of Django's is changed.
"""
