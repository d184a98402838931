// Incremental archives of GNU tar (`--listed-incremental`), in which each directory has a list of
// its files: those that did not change since the last archive are not in this one.
extension ArchiveReader {
  /// The omission for the first directory with such a file; it applies to the whole archive.
  static var incremental: String {
    "this is an incremental archive of GNU tar: files that had not changed are not in it"
  }

  /// Whether the content of the current member, which is a directory, lists files that are not in
  /// the archive. In pax archives, a header has the list (`HeaderNames`).
  ///
  /// - Throws: as `read(into:)` does.
  mutating func contentListsUnchanged(size: UInt64?) throws(CodecError) -> Bool {
    guard size ?? 0 > 0, formatName.format.contains("tar") else { return false }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
    defer { unsafe room.deallocate() }
    var isStart = true
    while case let count = try unsafe read(into: room), count > 0 {
      for index in 0..<count {
        let byte = unsafe room[index]
        if isStart, byte == HeaderNames.unchanged { return true }
        isStart = byte == 0
      }
    }
    return false
  }
}
