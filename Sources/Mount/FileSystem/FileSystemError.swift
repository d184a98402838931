internal import CFuse

/// The error of an operation of the file system, as an error number.
package struct FileSystemError: Error, Hashable, Sendable {
  package let number: Int32

  private init(_ number: Int) { self.number = Int32(number) }

  /// There is no such name, or no such node.
  package static let noEntry = FileSystemError(Int(CF_ENOENT))
  /// The repository cannot be read here, or its data is damaged.
  package static let io = FileSystemError(Int(CF_EIO))
  package static let notDirectory = FileSystemError(Int(CF_ENOTDIR))
  package static let isDirectory = FileSystemError(Int(CF_EISDIR))
  package static let invalid = FileSystemError(Int(CF_EINVAL))
  /// There is no such attribute.
  package static let noData = FileSystemError(Int(CF_ENODATA))
  /// No node has attributes of that name.
  static let unsupported = FileSystemError(Int(CF_EOPNOTSUPP))
  /// There is no data, or no hole, at or after an offset.
  package static let noAddress = FileSystemError(Int(CF_ENXIO))
}
