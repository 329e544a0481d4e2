from . import steps as scan
