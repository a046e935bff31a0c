from __future__ import annotations

from django.urls import path

from surehook.inbox.django import inbox

urlpatterns = [path("hooks/<str:source>", inbox.view)]
