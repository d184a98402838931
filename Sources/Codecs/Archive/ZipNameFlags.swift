/// The flags of a zip archive by which its names are UTF-8 (APPNOTE.TXT 4.4.4, bit 11).
///
/// libarchive converts a name with this flag to Unicode's form NFC, and copies the bytes of one
/// without it (archive_read_support_format_zip.c, `zip_read_local_file_header`). There is no option
/// for it, so the flags are cleared in the bytes that libarchive reads. Only headers of names that
/// are not ASCII count. They are found by the central directory, so only in files: in a stream the
/// names are converted.
struct ZipNameFlags {
  /// The offsets of the bytes with the flag in the archive, ascending.
  private var offsets: [UInt64] = []
  /// The offsets of the local headers to look at.
  private var localHeaders: [UInt64] = []

  /// Adds the flag of a header, and of the local header to which it leads.
  ///
  /// - Parameter end: The offset of the central directory, before which local headers are.
  mutating func add(_ header: ZipCentralDirectory.Header, before end: UInt64) {
    guard header.hasFlaggedName, let local = header.local else { return }
    offsets.append(header.start + 9)
    if local < end { localHeaders.append(local) }
  }

  /// Finds the flags of the local headers. Called after the last header was added.
  mutating func finish(in directory: inout ZipCentralDirectory) {
    localHeaders.sort()
    for offset in localHeaders {
      // A header that is none must not change what is there.
      guard let bytes = directory.bytes(8, at: offset),
        bytes.starts(with: ZipCentralDirectory.localSignature),
        bytes[bytes.startIndex + 7] & ZipCentralDirectory.nameFlag != 0
      else { continue }
      offsets.append(offset + 7)
    }
    localHeaders = []
    offsets.sort()
  }

  /// Clears the flags in a part of the archive.
  ///
  /// - Parameters:
  ///   - count: The number of bytes of the part.
  ///   - start: The offset of the first byte.
  func clear(in bytes: inout [UInt8], count: Int, at start: UInt64) {
    var (low, high) = (0, offsets.count)
    while low < high {
      let middle = (low + high) / 2
      if offsets[middle] < start { low = middle + 1 } else { high = middle }
    }
    while low < offsets.count, offsets[low] - start < UInt64(count) {
      bytes[Int(offsets[low] - start)] &= ~ZipCentralDirectory.nameFlag
      low += 1
    }
  }
}
