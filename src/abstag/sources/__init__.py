"""Sources: papers from where they are published, into a dump that readers read; one module a source."""

from abstag.sources._collect import Fetched as Fetched
from abstag.sources._collect import collect as collect
