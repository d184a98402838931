internal import CFuse

/// The error of an operation of the file system, as an error number.
package struct FileSystemError: Error, Hashable, Sendable {
  package let number: Int32

  private init(_ number: Int) { self.number = Int32(number) }

  /// The name or the node does not exist.
  package static let noEntry = FileSystemError(Int(CF_ENOENT))
  /// The repository cannot be read here, or its data is damaged.
  package static let io = FileSystemError(Int(CF_EIO))
  package static let notDirectory = FileSystemError(Int(CF_ENOTDIR))
  package static let isDirectory = FileSystemError(Int(CF_EISDIR))
  package static let invalid = FileSystemError(Int(CF_EINVAL))
  /// The attribute does not exist.
  package static let noData = FileSystemError(Int(CF_ENODATA))
  /// No node has attributes of that name.
  static let unsupported = FileSystemError(Int(CF_EOPNOTSUPP))
  /// No data, or no hole, exists at or after an offset.
  package static let noAddress = FileSystemError(Int(CF_ENXIO))
}
