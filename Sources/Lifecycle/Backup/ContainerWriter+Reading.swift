internal import ArchiveStore
internal import SystemIO

extension ContainerWriter {
  /// How often a file that changes while it is read is read before it is stored as it was read.
  private static let readings = 3

  /// Stores a file's content; reads it again when it changed meanwhile.
  func readUntilStill(
    _ file: borrowing Descriptor, _ path: ByteString, isDatabase: Bool
  ) throws -> (content: Content, status: FileStatus, stoodStill: Bool) {
    var before = try file.status()
    for reading in 1...Self.readings {
      let content = try read(file, path, size: before, isDatabase: isDatabase)
      let after = try file.status()
      if before.isSameContent(as: after) { return (content, after, true) }
      if reading == Self.readings { return (content, after, false) }
      before = after
    }
    throw SystemError.replaced(path)
  }

  private func read(
    _ file: borrowing Descriptor, _ path: ByteString, size status: FileStatus, isDatabase: Bool
  ) throws -> Content {
    let hints = FileHints(size: status.size, isDatabase: isDatabase)
    let extents =
      status.allocated < status.size
      ? try file.extents(size: status.size)
      : [Extent(offset: 0, length: status.size, isHole: false)]
    return try session.storeFile(logicalPath: path, hints: hints) { writer in
      var buffer = [UInt8](repeating: 0, count: Int(min(status.size, 1 << 20)))
      for extent in extents {
        if extent.isHole {
          try writer.appendHole(length: extent.length)
        } else if try !Self.copy(extent, of: file, to: writer, &buffer) {
          return
        }
      }
    }
  }

  /// Hands an extent's bytes on; false when the file ended before, having shrunk.
  private static func copy(
    _ extent: Extent, of file: borrowing Descriptor, to writer: FileWriter,
    _ buffer: inout [UInt8]
  ) throws -> Bool {
    var done: UInt64 = 0
    while done < extent.length {
      let wanted = Int(min(extent.length - done, UInt64(buffer.count)))
      let count = try file.read(into: &buffer, from: 0, to: wanted, at: extent.offset + done)
      try writer.append(buffer.span.extracting(0..<count))
      if count < wanted { return false }
      done += UInt64(count)
    }
    return true
  }
}

extension FileStatus {
  /// Whether nothing says that the content changed between two looks.
  func isSameContent(as other: FileStatus) -> Bool {
    size == other.size && modified == other.modified && changed == other.changed
  }
}
