internal import Codecs
internal import SystemIO

/// The digest of a document package: a hash of the kinds, names and contents of all its entries,
/// and of the targets of links. Modes and times are not part of it.
final class PackageDigest {
  private var hash = Blake2b()
  /// The sum of the sizes of the files in bytes.
  private(set) var bytes: UInt64 = 0
  /// Whether the mode of one of the files permits writing.
  private(set) var isWritable = false

  /// Adds all entries of a directory.
  ///
  /// - Returns: Whether the directory is within the limits of `PackageWalk`.
  func add(_ root: borrowing Directory) throws(SystemError) -> Bool {
    let end = try PackageWalk.run(root) { path, status, directory throws(SystemError) in
      let name = path.lastComponent ?? path
      switch status.kind {
      case .directory: addDirectory(path)
      case .symlink: addLink(path, to: try directory.target(of: name))
      case .file:
        let (size, hash) = try FileDigest.of(directory.fileUntouched(name))
        addFile(path, size: size, hash: hash)
        if status.permissions & 0o222 != 0 { isWritable = true }
      case .fifo, .socket, .characterDevice, .blockDevice: add("o", path, content: "")
      }
      return true
    }
    return end == .complete
  }

  func addDirectory(_ path: ByteString) { add("d", path, content: "") }

  func addLink(_ path: ByteString, to target: ByteString) { add("l", path, content: target) }

  /// Adds a file.
  ///
  /// - Parameter hash: The BLAKE2b-256 hash of its content, in hexadecimal digits.
  func addFile(_ path: ByteString, size: UInt64, hash: String) {
    bytes += size
    add("f", path, content: ByteString(hash))
  }

  /// Adds an entry. Neither a path nor a target contains a zero byte, so the parts are unambiguous.
  private func add(_ kind: String, _ path: ByteString, content: ByteString) {
    hash.update(Array(kind.utf8) + Array(path.bytes) + [0] + Array(content.bytes) + [0])
  }

  /// Returns the BLAKE2b-256 hash, in hexadecimal digits, and starts a new one.
  func finish() -> String { hash.finish().hex }
}

/// The hash of a file's content.
enum FileDigest {
  /// The number of bytes read at once.
  static let pieceSize = 1 << 20

  /// Returns the size and the BLAKE2b-256 hash of a file, in hexadecimal digits, and passes each
  /// piece of its content on. A file that grows meanwhile is read to its end.
  static func of(
    _ file: borrowing Descriptor,
    passingOn write: ([UInt8]) throws(SystemError) -> Void = { _ in }
  ) throws(SystemError) -> (size: UInt64, hash: String) {
    var hash = Blake2b()
    var offset: UInt64 = 0
    while true {
      let piece = try file.read(count: pieceSize, at: offset)
      if piece.isEmpty { return (offset, hash.finish().hex) }
      hash.update(piece)
      try write(piece)
      offset += UInt64(piece.count)
    }
  }
}
