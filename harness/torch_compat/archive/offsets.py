"""Calculates where torch's writer puts the records of a zip archive, without reading them.

Names and sizes determine the offset of each record, so it can be calculated from the central directory (or from the storages that a pickle
names) without the local headers. The rules, from ``getPadding`` and ``getOffset`` of caffe2/serialize/inline_container.cc and from the
writer of third_party/miniz, each compared with what the releases wrote:

* A record is a local header of 30 bytes, the full name (with the top folder), an extra field, the data, and a footer.
* The extra field contains a zip64 field if one is needed, then always the padding field: ``FB``, a 16-bit length, and that many ``Z``. Its
  length is chosen so that the data start at a multiple of the alignment.
* A zip64 field is present if the size of the data, or the offset of the header, is 0xFFFFFFFF or more: 4 bytes, 16 for the two sizes if the
  size is that large, 8 for the offset if the offset is. Both thresholds include 0xFFFFFFFF itself.
* The footer (data descriptor) has 16 bytes, or 24 if there is a zip64 field. A record of 0 bytes has none.
* The size before compression decides about zip64; the compressed size is the number of bytes in the file.

1.0.0 to 2.15.0 follow these rules without exception: the archives of TorchScript from 1.0 on, those of ``torch.save`` from 1.4 on, those of
``torch.package``, and pt2 archives. The alignment is 64 in all of them, except what ``torch.save`` writes from 2.7 on under
``torch.utils.serialization.config.save.storage_alignment``; the record ``.storage_alignment`` then states it.

Records are in the order of writing, which is the order of the central directory. The first header is at 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ALIGNMENT", "ZIP64_FROM", "calculated_offsets", "data_offset", "next_header_offset", "zip64_field_length"]

ALIGNMENT = 64
ZIP64_FROM = 0xFFFFFFFF  # numbers at or above it do not fit into 32 bits: this value itself means "see the zip64 field"
LOCAL_HEADER = 30
FIELD_HEADER = 4  # identifier and length of an extra field
FOOTER, FOOTER64 = 16, 24  # data descriptors


def zip64_field_length(header_offset: int, size: int) -> int:
    """The length of the zip64 field in a local header, including its header of 4 bytes; 0 if there is none."""
    if size < ZIP64_FROM and header_offset < ZIP64_FROM:
        return 0
    return FIELD_HEADER + (16 if size >= ZIP64_FROM else 0) + (8 if header_offset >= ZIP64_FROM else 0)


def data_offset(cursor: int, full_name_length: int, size: int, alignment: int = ALIGNMENT) -> int:
    """The data offset of a record whose local header starts at ``cursor``.

    Args:
        cursor: the offset of the local header.
        full_name_length: the length in bytes of the name with the top folder and its slash.
        size: the number of bytes of the record before compression.
        alignment: the offset is a multiple of it.
    """
    start = cursor + LOCAL_HEADER + full_name_length + FIELD_HEADER
    if size >= ZIP64_FROM or cursor >= ZIP64_FROM:
        start += zip64_field_length(cursor, size)
    return start + -start % alignment


def next_header_offset(header_offset: int, data_offset: int, size: int, stored_size: int | None = None) -> int:
    """The offset of the next local header, after the data and the footer.

    Args:
        header_offset: the offset of this record's local header.
        data_offset: the offset of its data.
        size: its number of bytes before compression.
        stored_size: its number of bytes in the file, if it is compressed.
    """
    if size == 0:
        return data_offset
    footer = FOOTER64 if size >= ZIP64_FROM or header_offset >= ZIP64_FROM else FOOTER
    return data_offset + (size if stored_size is None else stored_size) + footer


def calculated_offsets(
    records: Iterable[tuple[int, int, int]], alignment: int = ALIGNMENT, cursor: int = 0
) -> list[tuple[int, int]]:
    """The header and data offsets of each record, in the order of writing.

    Args:
        records: of each record the length in bytes of its full name, its size, and its size as stored.
        alignment: what offsets of data are multiples of.
        cursor: where the first header stands.
    """
    results = []
    for full_name_length, size, stored_size in records:
        if 0 < size < ZIP64_FROM > cursor:  # nearly all records: same result as the two functions if no zip64 field is needed
            start = cursor + LOCAL_HEADER + full_name_length + FIELD_HEADER
            start += -start % alignment
            results.append((cursor, start))
            cursor = start + stored_size + FOOTER
        else:
            start = data_offset(cursor, full_name_length, size, alignment)
            results.append((cursor, start))
            cursor = next_header_offset(cursor, start, size, stored_size)
    return results
