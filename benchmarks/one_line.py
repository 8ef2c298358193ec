"""Importing it makes what a script says of a wrong or odd input one line, with the exit code 1. A traceback is for mistakes of the script itself;
TUTTI_TRACEBACK=1 shows it always."""
import json
import os
import subprocess
import sys

INPUTS = (OSError, ValueError, KeyError, IndexError, EOFError, ImportError, subprocess.SubprocessError, KeyboardInterrupt)


def refuse(reason):
    """Ends the script with one line."""
    sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(str(reason).split())}")


def said(error):
    if isinstance(error, ImportError):
        return f"needs the Python package {error.name}: install it, or choose a Python that has it"
    if isinstance(error, subprocess.CalledProcessError):
        command = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd))
        told = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else error.stderr or ""
        return f"{command}: exit code {error.returncode} {told[-300:]}"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, json.JSONDecodeError):
        return f"what should be JSON is none ({error}): {error.doc[:80]!r}"
    if isinstance(error, (KeyError, IndexError)):
        return f"an argument is missing, or a file has other content than is expected ({type(error).__name__}: {error}); the first lines of the script say what it takes"
    return error


def hook(kind, error, trace):
    if not issubclass(kind, INPUTS) or os.environ.get("TUTTI_TRACEBACK"):
        return sys.__excepthook__(kind, error, trace)
    print(f"{os.path.basename(sys.argv[0])}: {' '.join(str(said(error)).split())}", file=sys.stderr)


sys.excepthook = hook
