"""Settings of a Django application with an outbox, for commands in processes of their own."""

import os

import pymysql

from tests.inbox.shop.settings import database

pymysql.install_as_MySQLdb()
DATABASES = {"default": database(os.environ["SHOP_DATABASE"])}
INSTALLED_APPS = ["surehook.outbox.django"]
SUREHOOK_OUTBOX = {"url": os.environ.get("SHOP_SERVER", ""), "key": "a-key-of-sixteen-chars"}
SECRET_KEY = "a key of tests"
USE_TZ = True
