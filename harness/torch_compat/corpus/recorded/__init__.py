"""Recorded observations: a folder with one file per release, which contains everything that the release added to the matrix.

The cell of a writer and a reader is in the file of the newer of the two. A new release therefore adds a file and changes no other: two
branches that each add a release merge without conflict, and the cells that neither could observe, those of one release with the other, are
reported as missing after the merge. Every distinct outcome and every long text is stored once, in the oldest file that needs it.

Grammar: a file is ASCII, fields are separated by tabs, and lines end with a newline and are sorted, in this order::

    file        = header reader* shown* options* text* answer* probe* deprecation* outcome* writers* read* wrote* end
    header      = "observations 3" LABEL              the file is LABEL.txt: torch-2.15.0, or reference
    reader      = "reader" NAME JSON                  {"identity", "observed", "protocol"} of a build of this release
    shown       = "shown" DAY SEALS                   older readers that were given the fixtures of this release, as of that day
    options     = "options" OPTIONS LOAD              the load options of cells with this name, unless they state their own
    text        = "text" ID JSON                      a text that answers and outcomes reference by "@" ID; ID is its digest
    answer      = "answer" ID JSON                    an answer to a probe; ID is a digest of the JSON
    probe       = "probe" NAME SAID                   the probe answers of a reader of this file; defined in this file or an older
    deprecation = "deprecation" NAME SAID             the same for deprecation probes
    outcome     = "outcome" ID JSON                   an outcome; ID is a digest of the JSON; "same" needs no line
    writers     = "writers" NAME RELEASES             releases whose fixtures a reader of this file was given, oldest first
    read        = "read" NAME RECIPES CELLS+          its outcomes for them; the sets of CELLS are sets of these writers
    wrote       = "wrote" FIXTURES CELLS*             outcomes of older readers for fixtures of this release; sets of those in shown,
                                                      oldest first, each by release, or by release and build if there are more
    SEALS       = NAME ":" SEAL (" " NAME ":" SEAL)*  oldest first; SEAL is a digest of the identity in its own file
    SAID        = PROBE ":" KEY ":" ID (" " PROBE ":" KEY ":" ID)*
    RELEASES    = RELEASE (" " RELEASE)*
    RECIPES     = RECIPE (" " RECIPE)*                which all have the same cells; the same applies to FIXTURES
    FIXTURES    = RECIPE ":" SUBJECT (" " RECIPE ":" SUBJECT)*
    CELLS       = OPTIONS [":" LOAD [":" SUBJECT]] (" " ID " " SET)+
    SET         = SPAN ("," SPAN)*
    SPAN        = FIRST | FIRST ".." LAST | FIRST ".."      from FIRST to LAST; from FIRST to the end of the list
    end         = "end" LINES SHA256                  the number and the digest of all lines above

In an answer or an outcome, a text that itself begins with "@" is escaped with a second "@". In the departures of an outcome,
``/calls/4//error`` stands for ``/calls/4/first/error`` and ``/calls/4/second/error``: most differences occur in both turns of a call.

``SUBJECT`` is a digest of a reader's input from a fixture, ``LOAD`` of the load options themselves (see :func:`cell_key`). ``read`` lines
refer to the subject in the fixture's ``wrote`` line, unless they state their own.
"""

from __future__ import annotations

from torch_compat.corpus.recorded.model import SUFFIX, Group, Recorded, outside, together
from torch_compat.corpus.recorded.reading import read_recorded
from torch_compat.corpus.recorded.writing import record, write_recorded

__all__ = ["SUFFIX", "Group", "Recorded", "outside", "read_recorded", "record", "together", "write_recorded"]
