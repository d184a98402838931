// The central directory of a zip archive, read and checked against the archive before extraction.
//
// A zip archive stores most values twice: in its central directory and before each entry's data.
// Programs that use one or the other extract different content from the same file. Both must
// therefore agree, the directory must be where the end of the archive points, and no two entries
// may share bytes (otherwise an archive of a few kilobytes could claim petabytes). Encrypted
// archives, multi-part archives, and compression methods other than deflate are refused. The data
// itself is decompressed by libarchive, which checks length and checksum.
//
// Source: PKWARE's APPNOTE.TXT 6.3.10; Fifield, A better zip bomb (2019), for the overlap.
internal import SandboxModel
internal import SystemIO

/// The entries of a zip archive, in the order of their data.
struct ZipDirectory {
  let entries: [ZipEntry]

  /// Reads and checks the central directory of a file with the given size in bytes.
  ///
  /// - Throws: `package` if the archive is damaged or not supported, `unsafePackage` if it is
  ///   crafted to deceive, `system` for a failed system call.
  init(
    of file: borrowing Descriptor, size: UInt64, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) {
    let end = try ZipEnd(of: file, size: size, fault: fault)
    guard end.count <= UInt64(limits.entries) else {
      throw fault.limitExceeded(
        "it claims \(end.count) entries, more than the limit of \(limits.entries)")
    }
    let bytes = try Self.directory(end, of: file, limits: limits, fault: fault)
    var entries: [ZipEntry] = []
    var at = 0
    for _ in 0..<end.count {
      guard let entry = ZipEntry(reading: bytes, at: &at) else {
        throw fault.damaged("its directory is truncated or contains an invalid entry")
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
    _ end: ZipEnd, of file: borrowing Descriptor, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) -> [UInt8] {
    guard end.size <= UInt64(limits.pathBytes) * 2 else {
      throw fault.limitExceeded("its directory has \(end.size) bytes")
    }
    let bytes = try ZipEnd.read(Int(end.size), at: end.offset, of: file)
    guard bytes.count == Int(end.size) else { throw fault.damaged("it is truncated") }
    return bytes
  }
}
