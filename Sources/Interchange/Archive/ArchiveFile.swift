internal import Codecs
package import SystemIO

/// The bytes of an archive: a file, or standard input.
package final class ArchiveFile {
  /// The path, or `standard input`.
  package let name: ByteString
  private let descriptor: Descriptor
  private var position: UInt64 = 0
  /// The size of a file in bytes; nil for a stream.
  package let size: UInt64?
  /// The modification time of a file; nil for a stream.
  package let modified: Timestamp?
  /// The error of a failed read.
  package private(set) var failure: SystemError?
  /// Called with the number of bytes of each read.
  package var onRead: ((Int) -> Void)?

  /// Opens the file at a path.
  package init(path: ByteString) throws(SystemError) {
    let file = try Descriptor.open(path: path)
    let status = try file.status()
    name = path
    descriptor = file
    size = status.size
    modified = status.modified
  }

  /// Opens standard input.
  package init() throws(SystemError) {
    descriptor = try Descriptor.standardInput()
    name = descriptor.name
    size = nil
    modified = nil
  }
}

extension ArchiveFile: ArchiveInput {
  package func read(into buffer: inout [UInt8]) -> Int {
    do throws(SystemError) {
      let count =
        size == nil
        ? try descriptor.read(into: &buffer)
        : try descriptor.read(into: &buffer, from: 0, to: buffer.count, at: position)
      position += UInt64(count)
      onRead?(count)
      return count
    } catch {
      failure = error
      return -1
    }
  }

  package func seek(to offset: UInt64) { position = offset }
}
