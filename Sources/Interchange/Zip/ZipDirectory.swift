// The directory of a zip archive, read and held against the archive before anything is unpacked.
//
// A zip says most things twice: in its central directory and before each entry's data. Programs that
// believe one or the other unpack two different apps of one file. So both must say the same, the
// directory must lie where the archive's end says, and no two entries may share bytes (an archive of
// some kilobytes could claim petabytes). What is encrypted, spread over several files, or packed by
// another method than deflate is refused by name. The data itself is libarchive's to unpack, which
// checks length and checksum.
//
// Source: PKWARE's APPNOTE.TXT 6.3.10; Fifield, A better zip bomb (2019), for the overlap.
internal import SandboxModel
internal import SystemIO

/// The entries of a zip archive, in the order in which their data lies in it.
struct ZipDirectory {
  let entries: [ZipEntry]

  /// Reads and checks the directory of a file with so many bytes.
  ///
  /// - Throws: `package` for what is damaged or cannot be read, `unsafePackage` for what is made to
  ///   deceive, `system` for a failed call.
  init(
    of file: borrowing Descriptor, size: UInt64, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) {
    let end = try ZipEnd(of: file, size: size, fault: fault)
    guard end.count <= UInt64(limits.entries) else {
      throw fault.tooMuch("it claims \(end.count) entries, and at most \(limits.entries) may be")
    }
    let bytes = try Self.directory(end, of: file, limits, fault)
    var entries: [ZipEntry] = []
    var at = 0
    for _ in 0..<end.count {
      guard let entry = ZipEntry(reading: bytes, at: &at) else {
        throw fault.damaged("its directory ends in the middle of an entry, or holds another thing")
      }
      entries.append(entry)
    }
    guard at == bytes.count else {
      throw fault.damaged("its directory has more than the \(end.count) entries that it claims")
    }
    entries.sort { $0.offset < $1.offset }
    try ZipCheck(entries: entries, end: end.offset, limits: limits, fault: fault)
      .run(on: file)
    self.entries = entries
  }

  private static func directory(
    _ end: ZipEnd, of file: borrowing Descriptor, _ limits: PackageLimits, _ fault: PackageFault
  ) throws(ModelError) -> [UInt8] {
    guard end.size <= UInt64(limits.pathBytes) * 2 else {
      throw fault.tooMuch("its directory has \(end.size) bytes")
    }
    let bytes = try ZipEnd.read(Int(end.size), at: end.offset, of: file)
    guard bytes.count == Int(end.size) else { throw fault.damaged("it is cut off") }
    return bytes
  }
}
