"""How Django calls this application of its: `bridgehead`, since its own label would be `django`."""

from django.apps import AppConfig


class BridgeheadConfig(AppConfig):
    """Has a command, and nothing else."""

    name = "bridgehead.contrib.django"
    label = "bridgehead"
