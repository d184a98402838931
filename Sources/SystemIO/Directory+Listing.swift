internal import Glibc

extension Directory {
  /// Returns the names of the children, sorted by bytes, without `.` and `..`.
  package func names() throws(SystemError) -> [ByteString] {
    try children().map(\.name).sorted()
  }

  /// Returns the names of the children, sorted by bytes, and closes the directory. Needs no second
  /// descriptor, unlike `names()`.
  package consuming func takeNames() throws(SystemError) -> [ByteString] {
    try children(through: raw).map(\.name).sorted()
  }

  /// Whether the directory has no children.
  package func isEmpty() throws(SystemError) -> Bool { try children().isEmpty }

  /// Returns the children in the file system's order. Children that vanish during the call are
  /// omitted.
  func children() throws(SystemError) -> [(name: ByteString, isDirectory: Bool)] {
    let again = try duplicate()
    return try children(through: again.raw)
  }

  /// Returns the children, from a descriptor that has not been listed before.
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
