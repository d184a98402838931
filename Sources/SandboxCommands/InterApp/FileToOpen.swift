internal import InterApp
internal import SystemIO

/// A host file whose type is to be determined. Only its first bytes are read.
struct FileToOpen {
  private let path: ByteString

  /// Creates the file at a path.
  init(_ path: ByteString) { self.path = path }

  /// Returns the file's type.
  ///
  /// - Throws: `SystemError` if the file does not exist or cannot be read; `OperationError` if it
  ///   is a FIFO, a socket or a device, which is not a document and is not opened.
  func type(in tree: TypeTree) throws -> FileType {
    guard let absolute = path.absolute, let name = absolute.lastComponent else {
      return tree.type(ofFile: "/", kind: .directory, head: [])
    }
    let parent = try Directory.open(path: absolute.parent)
    let status = try parent.status(name)
    switch status.kind {
    case .file, .directory, .symlink: break
    default:
      throw OperationError(
        .failed, code: .notAFile, "tell the type of", subject: path,
        reason: "it is a FIFO, a socket or a device, and no file",
        hint: "give a file or a document package")
    }
    guard status.kind == .file else { return tree.type(ofFile: name, kind: status.kind, head: []) }
    let head = try parent.fileUntouched(name).read(count: FileSignature.headLength, at: 0)
    return tree.type(ofFile: name, kind: .file, head: head)
  }
}
