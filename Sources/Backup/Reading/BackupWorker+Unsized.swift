internal import ArchiveStore
internal import SystemIO

extension BackupWorker {
  /// The maximum number of bytes of a file that reports a size of 0: some files of proc(5) have no
  /// end that a backup could reach.
  private static let unsizedLimit: UInt64 = 4 << 30

  /// Stores a file that reports a size of 0. Some file systems report that for files whose size
  /// they do not know before they are read, such as rclone for documents of Google Drive, or
  /// proc(5). So the file is read to its end. It is stored as it is, even if it begins like a
  /// database.
  ///
  /// A file that was empty and now has a size is growing. It counts as empty and as changed, so it
  /// is read again like any other: up to its size then, and not as far as its writer gets.
  ///
  /// - Throws: `SystemError.tooLarge` if it has more than `unsizedLimit` bytes.
  borrowing func readUnsized(_ file: borrowing Descriptor, at path: ByteString) throws -> Content {
    if try file.read(count: 1, at: 0).isEmpty { return .empty }
    if try file.status().size > 0 { return .empty }
    return try writer.storeFile(logicalPath: path) { content in
      try copyToEnd(of: file, at: path, to: content)
    }
  }

  private borrowing func copyToEnd(
    of file: borrowing Descriptor, at path: ByteString, to content: FileWriter
  ) throws {
    var offset: UInt64 = 0
    while true {
      let start = offset
      let count = try content.append(reading: { window in
        try file.read(count: ReadBuffer.size, at: start, appendingTo: &window)
      })
      run.request.counters.didHandle(bytes: UInt64(count))
      if count < ReadBuffer.size { return }
      offset += UInt64(count)
      guard offset < Self.unsizedLimit else { throw SystemError.tooLarge(path, to: .read) }
      try run.checkNotStopped()
      try run.checkpointIfDue()
    }
  }
}
