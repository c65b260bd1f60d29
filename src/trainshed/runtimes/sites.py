"""Where the packages lie that an environment sees from below."""

import site
import sys
import sysconfig

from trainshed.runtimes.folders import RuntimeFolders
from trainshed.runtimes.recipe import EnvironmentRecipe


def sites_of(recipe: EnvironmentRecipe, folders: RuntimeFolders) -> tuple[str, ...]:
    """Those of the environment it is laid on; of the server's own interpreter where that is none of ours."""
    if recipe.below is None:
        return ()
    if recipe.below.digest:
        version = recipe.interpreter.version
        return (str(folders.place(recipe.below.digest) / "lib" / f"python{version}" / "site-packages"),)
    own = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return tuple(dict.fromkeys((sysconfig.get_path("purelib"), *site.getsitepackages(), *own)))
