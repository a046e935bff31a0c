from __future__ import annotations

from django.db import models


class Contract(models.Model):
    """What a customer signs; its number is given once."""

    number = models.CharField(max_length=20, unique=True)
    state = models.CharField(max_length=20, default="sent")
