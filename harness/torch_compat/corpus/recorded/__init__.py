"""Recorded observations: a folder with one file per release, which holds all that this release added to the matrix.

The cell of a writer and a reader stands in the file of the newer of the two. So a new release adds a file and changes none: two
branches that each add a release merge without a conflict, and what neither could observe, the cells of one release with the
other, is missing by name after the merge. Every distinct outcome and every long text
stands once, in the oldest file that needs it.

The grammar. A file is ASCII, its fields are separated by tabs, its lines end with a newline and stand in this order, sorted::

    file        = header reader* shown* options* text* answer* probe* deprecation* outcome* writers* read* wrote* end
    header      = "observations 3" LABEL              the file is LABEL.txt: torch-2.15.0, or reference
    reader      = "reader" NAME JSON                  {"identity", "observed", "protocol"} of a build of this release
    shown       = "shown" DAY SEALS                   older readers that were shown what this release wrote, as of that day
    options     = "options" OPTIONS LOAD              the load options that cells of this name mean unless they state their own
    text        = "text" ID JSON                      a text that answers and outcomes mean by "@" ID; ID is a digest of it
    answer      = "answer" ID JSON                    an answer to a probe; ID is a digest of the JSON
    probe       = "probe" NAME SAID                   what a reader of this file said to probes: answers of this file or an older
    deprecation = "deprecation" NAME SAID             what it did with deprecated things
    outcome     = "outcome" ID JSON                   what came of reading; ID is a digest of the JSON; "same" needs no line
    writers     = "writers" NAME RELEASES             whose fixtures a reader of this file was shown, oldest first
    read        = "read" NAME RECIPES CELLS+          what it did with them; the sets of CELLS are sets of these writers
    wrote       = "wrote" FIXTURES CELLS*             what older readers did with fixtures of this release; sets of those shown, oldest
                                                      first, each by its release, or by release and build where there are more
    SEALS       = NAME ":" SEAL (" " NAME ":" SEAL)*  oldest first; SEAL is a digest of the identity that stands in its own file
    SAID        = PROBE ":" KEY ":" ID (" " PROBE ":" KEY ":" ID)*
    RELEASES    = RELEASE (" " RELEASE)*
    RECIPES     = RECIPE (" " RECIPE)*                which all have the same cells; so do FIXTURES
    FIXTURES    = RECIPE ":" SUBJECT (" " RECIPE ":" SUBJECT)*
    CELLS       = OPTIONS [":" LOAD [":" SUBJECT]] (" " ID " " SET)+
    SET         = SPAN ("," SPAN)*
    SPAN        = FIRST | FIRST ".." LAST | FIRST ".."      from one to the other; to the last one of the list
    end         = "end" LINES SHA256                  of all lines above

In an answer or an outcome, a text that begins with "@" itself has a second one before it. In the departures of an outcome,
``/calls/4//error`` is ``/calls/4/first/error`` and ``/calls/4/second/error``: most of what differs differs in both turns of a call.

``SUBJECT`` digests what a reader is given of a fixture, ``LOAD`` the load options themselves (see :func:`cell_key`). ``read`` lines
mean the subject that the fixture's ``wrote`` line states, unless they state their own.
"""

from __future__ import annotations

from torch_compat.corpus.recorded.model import SUFFIX, Group, Recorded, outside, together
from torch_compat.corpus.recorded.reading import read_recorded
from torch_compat.corpus.recorded.writing import record, write_recorded

__all__ = ["SUFFIX", "Group", "Recorded", "outside", "read_recorded", "record", "together", "write_recorded"]
