"""All that is known of a project before rules are applied to its files, each from what comes before it."""

from __future__ import annotations

from floorit.scan.devices import Devices
from floorit.scan.heat import Heat
from floorit.scan.kinds import Kinds
from floorit.scan.loaders import Loaders
from floorit.scan.origins import Origins
from floorit.scan.programs import Programs
from floorit.scan.project import Project
from floorit.scan.reads import Reads
from floorit.scan.settings import Settings
from floorit.scan.tables import Tables


class Whole:
    """Of one project."""

    def __init__(self, project: Project, asked: bool = False) -> None:
        self.project = project
        self.asked = asked  # for what reading alone leaves in doubt, too
        self.heat = Heat(project)
        self.devices = Devices(project, self.heat)
        self.kinds = Kinds(project, self.heat, self.devices)
        self.settings = Settings(project, self.heat, asked)
        self.programs = Programs(project, self.heat, self.settings, self.devices)
        self.tables = Tables(project, self.settings, self.programs)
        self.loaders = Loaders(project, self.heat, self.settings, self.programs)
        self.reads = Reads(project, self.heat)
        self.origins = Origins(project, self.heat)
