"""Builds and installs the package; the only build file, on purpose.

A ``[build-system]`` table would make every editable install skip the ``develop`` command below,
which openmim relies on.
"""

import os
import re
import shutil
from pathlib import Path

import setuptools
from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PACKAGE = 'mmvit_ext'
# What the mim clients look for in `mmvit_ext/.mim`; a partial checkout may lack some.
MIM_PARTS = [part for part in ('configs', 'tools', 'model-index.yml') if (ROOT / part).exists()]


def read_version() -> str:
    """Reads the version without importing the package, whose own imports a build lacks."""
    text = (ROOT / PACKAGE / 'version.py').read_text(encoding='utf-8')
    return re.search(r"__version__ = '(.+)'", text).group(1)


def read_requirements(purpose: str) -> list[str]:
    """Reads ``requirements/<purpose>.txt``, one requirement a line."""
    lines = (ROOT / 'requirements' / f'{purpose}.txt').read_text(encoding='utf-8').splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith('#')]


class BuildWithMim(build_py):
    """Puts configs, tools and the model index inside the built package, where mim finds them."""

    def run(self) -> None:
        """Builds as usual, then copies; an editable install has them in the repository already."""
        super().run()
        # setuptools before 64 has no such mode, and its editable installs do not come here
        if getattr(self, 'editable_mode', False):
            return
        target = Path(self.build_lib) / PACKAGE / '.mim'
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for part in MIM_PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(
                    ROOT / part, target / part, ignore=shutil.ignore_patterns('__pycache__')
                )
            else:
                shutil.copy2(ROOT / part, target / part)


COMMANDS = {'build_py': BuildWithMim}

# From setuptools 80 on, `develop` hands over to pip. With what pip then installs only onedl-mim
# works, and it would take the links for second copies.
if int(setuptools.__version__.split('.')[0]) < 80:
    from setuptools.command.develop import develop

    class DevelopWithMim(develop):
        """Links configs, tools and the model index into the source package, where openmim looks."""

        def run(self) -> None:
            """Develops as usual, then links."""
            super().run()
            if self.uninstall:
                return
            target = ROOT / PACKAGE / '.mim'
            target.mkdir(exist_ok=True)
            for part in MIM_PARTS:
                if not (target / part).exists():
                    (target / part).symlink_to(os.path.relpath(ROOT / part, target))

    COMMANDS['develop'] = DevelopWithMim


onedl = read_requirements('onedl')
openmmlab = read_requirements('openmmlab')

setup(
    name=PACKAGE,
    version=read_version(),
    description='Vision-transformer backbones and their analyses for the OpenMMLab stack',
    long_description=(ROOT / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    python_requires='>=3.10',
    classifiers=[
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
    ],
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    install_requires=read_requirements('runtime'),
    extras_require={
        'onedl': onedl,
        'openmmlab': openmmlab,
        'demo': read_requirements('demo'),
        'tests': read_requirements('tests'),
        # The extras that the clients add by themselves: openmim `mim`, onedl-mim `mminstall`.
        'mim': openmmlab,
        'mminstall': onedl,
    },
    cmdclass=COMMANDS,
    zip_safe=False,
)
