"""Python imports this at start-up in the children of `zerograd run`, through PYTHONPATH.

It arranges that the child is watched once it imports torch, gives way to the
sitecustomize that the child would have had without us, and costs a child that
never imports torch about a millisecond.
"""

import os
import sys


def _follow() -> None:
    if not os.environ.get("ZEROGRAD_RUN_FOLDER"):
        return
    try:
        from zerograd.runtime.processes import follow_this_process
    except ImportError:
        # Another environment's Python: ours is read from where the parent has it.
        home = os.environ.get("ZEROGRAD_RUN_HOME", "")
        sys.path.append(home)
        try:
            from zerograd.runtime.processes import follow_this_process
        except ImportError:
            return
        finally:
            sys.path.remove(home)
    follow_this_process()


def _give_way() -> None:
    """Run the sitecustomize that stands behind this one on the path, under its own name."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _follow()
except Exception as error:
    sys.stderr.write(f"zerograd: this process is not followed ({error!r})\n")
_give_way()
