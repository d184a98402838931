"""The library android_backup, with a mistake of its own mended.

It takes the bytes of a master key for text with escapes, so that it fails for a key with `\\u` or
`\\U` in it: one in a thousand. Android takes each byte for a character of its own.
"""

from android_backup import AndroidBackup, CompressionType, EncryptionType

__all__ = ["AndroidBackup", "CompressionType", "EncryptionType"]


def encode_utf8(key):
    # Android's bytes have a sign: those above 0x7f become characters from U+FF80.
    return "".join(chr(byte if byte < 0x80 else 0xFF00 + byte) for byte in key).encode()


AndroidBackup.encode_utf8 = staticmethod(encode_utf8)
