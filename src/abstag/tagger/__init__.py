"""Tag papers with a bundle: texts and records in memory, and whole dumps into files."""

from abstag.tagger.api import Tagger as Tagger
from abstag.tagger.api import find_bundle as find_bundle
from abstag.tagger.job import Reading as Reading
from abstag.tagger.job import Summary as Summary
from abstag.tagger.job import tag_dumps as tag_dumps
from abstag.tagger.lines import DECISIONS as DECISIONS
from abstag.tagger.lines import Choice as Choice
from abstag.tagger.output import summary_path as summary_path
