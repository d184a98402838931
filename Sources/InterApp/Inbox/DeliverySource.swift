internal import Codecs
internal import SystemIO

/// A file, or bytes with a name, to be delivered.
struct DeliverySource: ~Copyable {
  /// The path as given, for messages.
  let path: ByteString
  let name: ByteString
  let type: FileType
  /// The size in bytes.
  let size: UInt64
  private let content: Content

  private enum Content: ~Copyable {
    case file(Descriptor)
    case bytes([UInt8])
  }

  /// Opens a regular file. A symbolic link is followed; its own name is used.
  ///
  /// - Throws: `OperationError` for anything but a regular file.
  init(_ path: ByteString, in tree: TypeTree) throws(OperationError) {
    let file = try Self.open(path)
    let name = path.lastComponent ?? path
    do throws(SystemError) {
      let status = try file.status()
      let head = try file.read(count: FileSignature.headLength, at: 0)
      self.path = path
      self.name = name
      type = tree.type(ofFile: name, kind: .file, head: head)
      size = status.size
      content = .file(file)
    } catch { throw Self.failure(error, path) }
  }

  private static func open(
    _ path: ByteString
  ) throws(OperationError) -> Descriptor {
    let found: Descriptor?
    do throws(SystemError) { found = try file(at: path) } catch { throw failure(error, path) }
    guard let found, path.lastComponent?.nameFault == nil else {
      throw OperationError(
        .failed, code: .notAFile, "deliver", subject: path,
        reason: "it is not a regular file", hint: "deliver the files of a directory, or an archive")
    }
    return found
  }

  /// Opens a regular file; nil if the path leads to an entry of another kind, which is not opened: a
  /// FIFO would block.
  private static func file(at path: ByteString) throws(SystemError) -> Descriptor? {
    let real = try Host.realPath(path)
    let parent = try Directory.open(path: real.parent)
    guard let own = real.lastComponent, try parent.status(own).kind == .file else { return nil }
    let file = try parent.fileUntouched(own)
    guard try file.status().kind == .file else { return nil }
    return consume file
  }

  private static func failure(_ error: SystemError, _ path: ByteString) -> OperationError {
    OperationError(
      error.isMissing ? .notFound : .failed, code: error.code, "deliver", subject: path,
      reason: error.reason, hint: error.hint)
  }

  /// Creates a source of bytes.
  ///
  /// - Throws: `OperationError` if the name is not that of a file.
  init(_ bytes: [UInt8], named name: ByteString, in tree: TypeTree) throws(OperationError) {
    if let fault = name.nameFault {
      throw OperationError(
        .failed, code: .invalidValue, "deliver", subject: name, reason: fault)
    }
    path = name
    self.name = name
    type = tree.type(
      ofFile: name, kind: .file, head: Array(bytes.prefix(FileSignature.headLength)))
    size = UInt64(bytes.count)
    content = .bytes(bytes)
  }

  /// The bytes read at once.
  private static let pieceSize = 1 << 20

  /// Copies the content; returns its size and hash. A file that grows is copied to its end.
  borrowing func copy(
    to target: borrowing AtomicFile
  ) throws(SystemError) -> (size: UInt64, hash: String) {
    var hash = Blake2b()
    var offset: UInt64 = 0
    switch content {
    case .bytes(let bytes):
      hash.update(bytes)
      try target.write(bytes)
      offset = UInt64(bytes.count)
    case .file(let file):
      while true {
        let piece = try file.read(count: Self.pieceSize, at: offset)
        if piece.isEmpty { break }
        hash.update(piece)
        try target.write(piece)
        offset += UInt64(piece.count)
      }
    }
    return (offset, hash.finish().hex)
  }
}
