"""Lets a second signal end a process at once, even one whose loop is stuck: the kernel does it.

No handler written in Python runs while the loop is held by one long step, and none at all while native code holds the
interpreter. So the kernel is told to reset the handler as it calls it (SA_RESETHAND): the first signal is noted for the
loop, and the second one has its default action. Python has no function for this; on machines other than those named here
the loop must come round for a second signal too.
"""

from __future__ import annotations

import ctypes
import platform
import sys

MACHINES = ("x86_64", "aarch64")  # where `struct sigaction` of the C libraries is this
SA_RESETHAND = 0x80000000


class _Action(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_uint),
        ("restorer", ctypes.c_void_p),
    )


def handle_once(number: int) -> bool:
    """Let this signal's present handler be called only once; False where that cannot be done here."""
    if sys.platform != "linux" or platform.machine() not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    action, change = _Action(), ctypes.CDLL(None, use_errno=True).sigaction
    if change(number, None, ctypes.byref(action)) != 0:
        return False
    action.flags |= SA_RESETHAND
    return int(change(number, ctypes.byref(action), None)) == 0
