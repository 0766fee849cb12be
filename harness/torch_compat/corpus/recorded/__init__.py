"""Recorded observations: a folder with one file per release, which holds all that this release added to the matrix.

The cell of a writer and a reader stands in the file of the newer of the two. So a new release adds a file and changes none: two
branches that each add a release merge without a conflict, and what neither could observe, the cells of one release with the
other, is missing by name after the merge. Every distinct outcome stands once, in the oldest file that needs it.

The grammar. A file is ASCII, its fields are separated by tabs, its lines end with a newline and stand in this order, sorted::

    file        = header reader* shown* answer* probe* deprecation* outcome* writers* read* wrote* end
    header      = "observations 2" LABEL              the file is LABEL.txt: torch-2.15.0, or reference
    reader      = "reader" NAME JSON                  {"identity", "observed", "protocol"} of a build of this release
    shown       = "shown" NAME DAY SEAL               an older reader that was shown what this release wrote; SEAL is a digest of
                                                      the identity that stands in its own file
    answer      = "answer" ID JSON                    an answer to a probe; ID is a digest of the JSON
    probe       = "probe" NAME PROBE KEY ID           what a reader of this file said to a probe: an answer of this file or an older
    deprecation = "deprecation" NAME PROBE KEY ID     what it did with a deprecated thing
    outcome     = "outcome" ID JSON                   what came of reading; ID is a digest of the JSON; "same" needs no line
    writers     = "writers" NAME RELEASE ...          whose fixtures a reader of this file was shown, oldest first, with spaces
    read        = "read" NAME RECIPE CELLS+           what it did with them; the sets of CELLS are sets of these writers
    wrote       = "wrote" RECIPE SUBJECT CELLS*       what older readers did with a fixture of this release; sets of those shown, without "torch-"
    CELLS       = OPTIONS ":" LOAD [":" SUBJECT] " " ID " " SET
    SET         = SPAN ("," SPAN)*
    SPAN        = FIRST | FIRST ".." LAST | FIRST ".."      from one to the other; to the last one of the list
    end         = "end" LINES SHA256                  of all lines above

``SUBJECT`` digests what a reader is given of a fixture, ``LOAD`` the load options themselves (see :func:`cell_key`). ``read`` lines
mean the subject that the fixture's ``wrote`` line states, unless they state their own.
"""

from __future__ import annotations

from torch_compat.corpus.recorded.model import SUFFIX, Group, Recorded, outside, together
from torch_compat.corpus.recorded.reading import read_recorded
from torch_compat.corpus.recorded.writing import record, write_recorded

__all__ = ["SUFFIX", "Group", "Recorded", "outside", "read_recorded", "record", "together", "write_recorded"]
