"""Image files that end too early, and files that do not decode."""

from io import BytesIO

JPEG_BEGIN, JPEG_END = b'\xff\xd8\xff', b'\xff\xd9'
PNG_BEGIN, PNG_END = b'\x89PNG\r\n\x1a\n', b'IEND\xaeB`\x82'
START_OF_SCAN = 0xDA


def is_cut_off(data: bytes) -> bool:
    """Tells whether the content of a JPEG or PNG file ends before the image does.

    Some decoders fill in what is missing, without an error: OpenCV's ``imread`` with grey. A
    complete JPEG (ITU-T T.81) has an end-of-image marker behind its first scan - not before it, as
    a small preview in the header has one of its own - and a complete PNG (ISO/IEC 15948) an IEND
    chunk. Other bytes may follow. Damage in the middle of a file is not found, nor anything in
    other formats.

    Args:
        data: The whole file.

    Returns:
        True if a part of the image is missing.
    """
    if data.startswith(JPEG_BEGIN):
        return data.rfind(JPEG_END, _first_scan(data)) < 0
    return data.startswith(PNG_BEGIN) and data.rfind(PNG_END) < 0


def decoding_error(data: bytes) -> str | None:
    """What Pillow, which accepts no missing parts, says about a file that it cannot decode.

    Args:
        data: The whole file.

    Returns:
        The message, or None where the image decodes.
    """
    from PIL import Image

    try:
        Image.open(BytesIO(data)).load()
    # its plug-ins raise OSError, SyntaxError, ValueError, struct.error and others
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def _first_scan(data: bytes) -> int:
    """Where a JPEG's header ends; behind the data where they do not reach so far."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != START_OF_SCAN:
        # 0xFF may be repeated before a marker
        fill = data[at + 1] == 0xFF
        at += 1 if fill else 2 + int.from_bytes(data[at + 2 : at + 4], 'big')
    return at
