/// The bytes in the headers of a zip archive that would make libarchive change names; it gets
/// others.
///
/// libarchive converts a name that is marked as UTF-8 (APPNOTE.TXT 4.4.4, bit 11) to Unicode's form
/// NFC, and copies the bytes of one that is not (archive_read_support_format_zip.c,
/// `zip_read_local_file_header`). It takes a backslash in a name without a slash for a separator,
/// as on Windows, unless the local header has the number of another system. There is no option for
/// either, so in the bytes that libarchive reads, the flags are cleared, and the system is set to
/// that of the central directory. libarchive truncates a name at a NUL, which may make it the name
/// of another member, so it gets another byte, and the reader gets the name with the NUL. An extra
/// field with a name in UTF-8 that is no UTF-8 gets another number, which libarchive ignores. Only
/// headers of such names count. They are found by the central directory, so only in files: in a
/// stream the names are converted.
struct ZipNameFlags {
  /// A byte of a header to change.
  private struct Change {
    let offset: UInt64
    /// The new value of the byte; nil for the byte with the flag, which is cleared.
    let value: UInt8?
  }

  /// A local header to examine.
  private struct Local {
    let offset: UInt64
    let hasFlaggedName: Bool
    let system: UInt8?
    let hasNUL: Bool
    let hasInvalidText: Bool
  }

  /// The byte that libarchive gets for a NUL.
  private static let substitute: UInt8 = 1
  /// The maximum number of bytes of names with a NUL that are kept. Only an archive crafted for
  /// that purpose has more.
  private static let namesLimit = 16 << 20
  /// The size of a local header without its name and extra field.
  private static let localSize = 30

  /// The names with a NUL by the names that libarchive gets.
  private(set) var names: [[UInt8]: [UInt8]] = [:]
  private var namesSize = 0
  /// The changes in the order of their offsets.
  private var changes: [Change] = []
  private var localHeaders: [Local] = []

  /// Adds the changes of a header, and of the local header to which it leads.
  ///
  /// - Parameter end: The offset of the central directory, before which local headers are.
  mutating func add(_ header: ZipCentralDirectory.Header, before end: UInt64) {
    guard
      header.hasFlaggedName || header.hasBackslash || header.hasNUL || header.hasInvalidText,
      let local = header.local
    else { return }
    if header.hasFlaggedName { changes.append(Change(offset: header.start + 9, value: nil)) }
    if local < end {
      localHeaders.append(
        Local(
          offset: local, hasFlaggedName: header.hasFlaggedName,
          system: header.hasBackslash ? header.system : nil, hasNUL: header.hasNUL,
          hasInvalidText: header.hasInvalidText))
    }
  }

  /// Finds the bytes of the local headers. Called after the last header was added.
  mutating func finish(in directory: inout ZipCentralDirectory) {
    localHeaders.sort { $0.offset < $1.offset }
    for local in localHeaders {
      // An invalid header must not change the bytes there.
      guard let bytes = directory.bytes(8, at: local.offset),
        bytes.starts(with: ZipCentralDirectory.localSignature)
      else { continue }
      if let system = local.system {
        changes.append(Change(offset: local.offset + 5, value: system))
      }
      if local.hasFlaggedName, bytes[bytes.startIndex + 7] & ZipCentralDirectory.nameFlag != 0 {
        changes.append(Change(offset: local.offset + 7, value: nil))
      }
      if local.hasInvalidText { hideInvalidText(of: local.offset, in: &directory) }
      if local.hasNUL { replaceNULs(of: local.offset, in: &directory) }
    }
    localHeaders = []
    changes.sort { $0.offset < $1.offset }
  }

  /// Adds the changes of the NULs in the name of a local header.
  private mutating func replaceNULs(of offset: UInt64, in directory: inout ZipCentralDirectory) {
    guard let fixed = directory.bytes(Self.localSize, at: offset) else { return }
    let count = Int(fixed[fixed.startIndex + 26]) | Int(fixed[fixed.startIndex + 27]) << 8
    guard let header = directory.bytes(Self.localSize + count, at: offset) else { return }
    let name = Array(header.dropFirst(Self.localSize))
    namesSize += name.count
    guard namesSize <= Self.namesLimit else { return }
    let nulls = name.indices.filter { name[$0] == 0 }
    changes += nulls.map {
      Change(offset: offset + UInt64(Self.localSize + $0), value: Self.substitute)
    }
    names[name.map { $0 == 0 ? Self.substitute : $0 }] = nulls.isEmpty ? nil : name
  }

  /// Adds the change of the number of the extra field in a local header with a name that is no
  /// UTF-8.
  private mutating func hideInvalidText(
    of offset: UInt64, in directory: inout ZipCentralDirectory
  ) {
    guard let fixed = directory.bytes(Self.localSize, at: offset) else { return }
    let counts = fixed.dropFirst(26).prefix(4).map { Int($0) }
    let start = Self.localSize + (counts[0] | counts[1] << 8)
    let size = start + (counts[2] | counts[3] << 8)
    guard let header = directory.bytes(size, at: offset),
      let field = ZipMemberNames.textName(in: header.dropFirst(start)), !field.isText
    else { return }
    changes.append(Change(offset: offset + UInt64(start + field.offset), value: 0))
  }

  /// Changes the bytes in a part of the archive.
  ///
  /// - Parameters:
  ///   - count: The number of bytes of the part.
  ///   - start: The offset of the first byte.
  func apply(to bytes: inout [UInt8], count: Int, at start: UInt64) {
    var (low, high) = (0, changes.count)
    while low < high {
      let middle = (low + high) / 2
      if changes[middle].offset < start { low = middle + 1 } else { high = middle }
    }
    while low < changes.count, changes[low].offset - start < UInt64(count) {
      let index = Int(changes[low].offset - start)
      bytes[index] = changes[low].value ?? bytes[index] & ~ZipCentralDirectory.nameFlag
      low += 1
    }
  }
}
