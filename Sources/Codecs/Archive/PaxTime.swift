internal import CArchive

/// Times before 1970 in pax archives, as libarchive reads them.
enum PaxTime {
  /// Whether libarchive reads -1.75 as -1 second and 750,000,000 nanoseconds, which is -0.25, as
  /// `pax_time` of version 3.6 does. Tried once, since a later version may not.
  static let isMisread = seconds(of: (-2, 250_000_000)) == -1

  /// Returns a time of a pax archive with that error corrected. The sign of a time in the second
  /// before 1970 is lost.
  static func corrected(_ seconds: Int64, _ nanoseconds: UInt32) -> (Int64, UInt32) {
    guard seconds < 0, nanoseconds > 0, isMisread else { return (seconds, nanoseconds) }
    return (seconds - 1, 1_000_000_000 - nanoseconds)
  }

  /// Writes an archive with a time, and returns the seconds that libarchive reads in it.
  private static func seconds(of time: (seconds: Int64, nanoseconds: UInt32)) -> Int? {
    var member = PaxMember(path: [UInt8(ascii: "x")], kind: .directory, mode: 0o755)
    (member.modified, member.nanoseconds) = time
    let bytes = member.header() + PaxMember.end
    guard let archive = unsafe archive_read_new() else { return nil }
    defer { unsafe archive_read_free(archive) }
    unsafe archive_read_support_format_tar(archive)
    return unsafe bytes.span.withUnsafeBytes { buffer in
      var entry: OpaquePointer?
      let opened = unsafe archive_read_open_memory(archive, buffer.baseAddress, buffer.count)
      guard opened == ARCHIVE_OK,
        unsafe archive_read_next_header(archive, &entry) == ARCHIVE_OK, let entry = unsafe entry
      else { return nil }
      return unsafe Int(archive_entry_mtime(entry))
    }
  }
}
