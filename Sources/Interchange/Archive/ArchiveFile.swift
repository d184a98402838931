package import Codecs
package import SystemIO

/// The bytes of an archive with its name and the errors of reading it.
package protocol NamedArchiveInput: ArchiveInput {
  /// The name for messages.
  var name: ByteString { get }
  /// The modification time of a file; nil for a stream.
  var modified: Timestamp? { get }
  /// The error of a failed read.
  var failure: SystemError? { get }
  /// Whether the reading failed because a stop was requested.
  var isStopped: Bool { get }
  /// Whether the bytes changed since the input was opened. The default is false, as for a stream.
  var hasChanged: Bool { get }
}

extension NamedArchiveInput {
  package var hasChanged: Bool { false }
}

/// The bytes of an archive: a file, a FIFO, or standard input.
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
  /// Called several times a second while a stream has no bytes; the reading fails once it returns
  /// true.
  package var isStopping: () -> Bool = { false }
  /// Whether the reading failed because of `isStopping`.
  package private(set) var isStopped = false

  /// Opens the file or FIFO at a path.
  package init(path: ByteString) throws(SystemError) {
    let file = try Descriptor.open(path: path, allowsFIFO: true)
    let status = try file.status()
    let isFile = status.kind == .file
    name = path
    descriptor = file
    size = isFile ? status.size : nil
    modified = isFile ? status.modified : nil
  }

  /// Takes an open file.
  ///
  /// - Parameter name: the name for messages.
  package init(_ descriptor: consuming Descriptor, name: ByteString) throws(SystemError) {
    let status = try descriptor.status()
    self.descriptor = descriptor
    self.name = name
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

  /// Refuses a stream, for an action that reads a package twice.
  func requireRereadable(to action: String) throws(InterchangeError) {
    if size != nil { return }
    throw InterchangeError(
      .unsupported, action, subject: name,
      reason: "a package has to be read twice, and this is a stream",
      hint: "write it to a file first")
  }
}

extension ArchiveFile: NamedArchiveInput {
  package func read(into buffer: inout [UInt8]) -> Int {
    do throws(SystemError) {
      let found: Int? =
        size == nil
        ? try descriptor.readAvailable(into: &buffer, isStopping: isStopping)
        : try descriptor.read(into: &buffer, from: 0, to: buffer.count, at: position)
      guard let count = found else {
        isStopped = true
        return -1
      }
      position += UInt64(count)
      onRead?(count)
      return count
    } catch {
      failure = error
      return -1
    }
  }

  package func seek(to offset: UInt64) { position = offset }

  package var hasChanged: Bool {
    guard size != nil, let status = try? descriptor.status() else { return false }
    return status.size != size || status.modified != modified
  }
}
