internal import Glibc

extension Directory {
  /// The names of the children, sorted by their bytes, without `.` and `..`.
  public func names() throws(SystemError) -> [ByteString] {
    try children().map(\.name).sorted()
  }

  /// The names of the children, sorted by their bytes: by the handle itself, which ends with it, so
  /// without a second one. For a directory that is opened to be listed.
  public consuming func takeNames() throws(SystemError) -> [ByteString] {
    try children(through: raw).map(\.name).sorted()
  }

  /// Whether the directory has no child.
  public func isEmpty() throws(SystemError) -> Bool { try children().isEmpty }

  /// The children in the file system's order, each with whether it is a directory. What vanishes
  /// meanwhile is left out.
  func children() throws(SystemError) -> [(name: ByteString, isDirectory: Bool)] {
    let again = try duplicate()
    return try children(through: again.raw)
  }

  /// The children, by a handle that was not listed before.
  private func children(
    through raw: Int32
  ) throws(SystemError) -> [(name: ByteString, isDirectory: Bool)] {
    var listing = Listing()
    var found: [(name: ByteString, type: UInt8)] = []
    while try listing.fill(from: raw, path: path) {
      unsafe listing.withEach { place, _ in found.append((listing.name(place), place.type)) }
    }
    var children: [(name: ByteString, isDirectory: Bool)] = []
    for (name, type) in found {
      if type != DT_UNKNOWN {
        children.append((name, type == DT_DIR))
      } else if let status = try statusIfPresent(name) {
        children.append((name, status.kind == .directory))
      }
    }
    return children
  }
}
