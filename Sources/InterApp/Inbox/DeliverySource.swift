internal import Codecs
internal import SystemIO

/// A file, a document package, or bytes with a name, to be delivered.
struct DeliverySource: ~Copyable {
  /// The path as given, for messages.
  let path: ByteString
  let name: ByteString
  let type: FileType
  /// The size in bytes; for a package, the sum of its files.
  let size: UInt64
  /// The number of entries in a package, 1 for a file.
  let entries: Int
  /// Whether it is a document package.
  let isPackage: Bool
  private let content: Content

  private enum Content: ~Copyable {
    case file(Descriptor)
    case package(Directory)
    case bytes([UInt8])
  }

  /// Opens a regular file, or a directory of a type that conforms to `com.apple.package`. A
  /// symbolic link is followed; its own name is used.
  ///
  /// - Parameter name: The name for the copy instead of that of the file or package.
  /// - Throws: `OperationError` for anything else, and for a package that cannot be copied
  ///   completely.
  init(
    _ path: ByteString, named name: ByteString? = nil, in tree: TypeTree
  ) throws(OperationError) {
    let found: Content?
    do throws(SystemError) { found = try Self.open(path) } catch { throw Self.failure(error, path) }
    let name = name ?? path.lastComponent ?? path
    guard let found, name.nameFault == nil else {
      throw OperationError(
        .failed, code: .notAFile, "deliver", subject: path,
        reason: "it is neither a regular file nor a document package",
        hint: "deliver the files of a directory, or an archive")
    }
    let facts = try Self.facts(of: found, path, name, in: tree)
    self.path = path
    self.name = name
    (type, size, entries, isPackage) = facts
    content = found
  }

  /// Opens a regular file or a directory; nil if the path leads to an entry of another kind, which
  /// is not opened, because a FIFO would block.
  private static func open(_ path: ByteString) throws(SystemError) -> Content? {
    let real = try Host.realPath(path)
    let parent = try Directory.open(path: real.parent)
    guard let own = real.lastComponent else { return nil }
    let kind = try parent.status(own).kind
    if kind == .directory { return .package(try parent.directory(own)) }
    guard kind == .file else { return nil }
    let file = try parent.fileUntouched(own)
    guard try file.status().kind == .file else { return nil }
    return .file(file)
  }

  private typealias Facts = (type: FileType, size: UInt64, entries: Int, isPackage: Bool)

  private static func facts(
    of content: borrowing Content, _ path: ByteString, _ name: ByteString, in tree: TypeTree
  ) throws(OperationError) -> Facts {
    switch content {
    case .bytes(let bytes):
      return (tree.type(ofFile: name, kind: .file, head: bytes), UInt64(bytes.count), 1, false)
    case .file(let file):
      do throws(SystemError) {
        let head = try file.read(count: FileSignature.headLength, at: 0)
        return (tree.type(ofFile: name, kind: .file, head: head), try file.status().size, 1, false)
      } catch { throw failure(error, path) }
    case .package(let directory):
      let type = tree.type(ofFile: name, kind: .directory, head: [])
      guard tree.conforms(type.type, to: package) else {
        throw OperationError(
          .failed, code: .typeRefused, "deliver", subject: path,
          reason: "it is a directory of the type '\(type.type)', which is not a document package",
          hint: "deliver the files of the directory, or an archive")
      }
      let measure: PackageWalk.Measure
      do throws(SystemError) {
        measure = try PackageWalk.Measure(of: directory)
      } catch { throw failure(error, path) }
      if let refusal = measure.refusal { throw unsafe(refusal, path) }
      return (type, measure.bytes, measure.entries, true)
    }
  }

  private static let package = TypeIdentifier(known: "com.apple.package")

  private static func unsafe(_ reason: String, _ path: ByteString) -> OperationError {
    OperationError(
      .failed, code: .unsafePackage, "deliver", subject: path,
      reason: "a package is delivered as a whole or not at all, and \(reason)")
  }

  private static func failure(_ error: SystemError, _ path: ByteString) -> OperationError {
    OperationError(
      error.isMissing ? .notFound : .failed, code: error.code, "deliver", subject: path,
      reason: error.reason, hint: error.hint)
  }

  /// Creates a source of bytes.
  ///
  /// - Throws: `OperationError` if the name is not valid for a file.
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
    (entries, isPackage) = (1, false)
    content = .bytes(bytes)
  }

  /// Copies the content into a directory, under a temporary name. A file that grows meanwhile is
  /// copied to its end.
  borrowing func stage(in directory: borrowing Directory) throws(OperationError) -> StagedDelivery {
    // The reason to refuse a package that was changed after it was measured.
    var refusal: String?
    do throws(SystemError) {
      switch content {
      case .bytes(let bytes):
        let copy = try AtomicFile(in: directory, permissions: 0o444)
        try copy.write(bytes)
        try Self.settle(copy)
        return StagedDelivery(
          .file(copy), size: UInt64(bytes.count), hash: Blake2b.hash(bytes).hex)
      case .file(let file):
        let copy = try AtomicFile(in: directory, permissions: 0o444)
        let (size, hash) = try FileDigest.of(file) { piece throws(SystemError) in
          try copy.write(piece)
        }
        try Self.settle(copy)
        return StagedDelivery(.file(copy), size: size, hash: hash)
      case .package(let package):
        let copy = try PackageCopy(in: directory)
        refusal = try copy.add(package)
        if refusal == nil {
          return StagedDelivery(
            .package(copy), size: copy.digest.bytes, hash: copy.digest.finish())
        }
      }
    } catch {
      throw OperationError(
        .failed, code: error.code, "deliver", subject: path, reason: error.reason,
        hint: error.hint)
    }
    throw Self.unsafe(refusal ?? "", path)
  }

  /// Sets the owner of a file, and a mode that permits nobody to write it, before it is in place:
  /// the app can put anything under the file's name later.
  private static func settle(_ copy: borrowing AtomicFile) throws(SystemError) {
    try copy.setPermissions(0o444)
    try copy.inheritOwner()
  }
}

/// A file or package that is copied to its directory, but not yet in place. It is removed if it is
/// not committed.
struct StagedDelivery: ~Copyable {
  /// The size in bytes; for a package, the sum of its files.
  let size: UInt64
  let hash: String
  private let content: Content

  enum Content: ~Copyable {
    case file(AtomicFile)
    case package(PackageCopy)
  }

  init(_ content: consuming Content, size: UInt64, hash: String) {
    (self.size, self.hash) = (size, hash)
    self.content = content
  }

  /// Renames it to its final name, which must not exist, durably.
  consuming func commit(as name: ByteString) throws(SystemError) {
    switch consume content {
    case .file(let file): try file.commit(as: name, replacing: false)
    case .package(let copy): try copy.commit(as: name)
    }
  }
}
