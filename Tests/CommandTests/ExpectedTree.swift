import SystemIO
import TestSupport

/// The tree that restoring a whole snapshot of a device must give: the entries included by its
/// policy and their parent directories, at logical paths.
struct ExpectedTree {
  /// The entries by logical path.
  private(set) var stored: [ByteString: ClassifiedEntry] = [:]

  init(_ entries: [ClassifiedEntry]) {
    let all = Dictionary(entries.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    for entry in entries where entry.isKept {
      var path = entry.path
      while let here = all[path], stored[path] == nil {
        stored[path] = here
        path = path.directoryPath
      }
    }
  }

  /// Makes the tree. Its files are hard links to the device's own, so that their metadata, holes
  /// and mutual links are the same and nothing is copied.
  func make(at root: ByteString) throws {
    let entries = stored.sorted { $0.key < $1.key }.map(\.value)
    var above: Set<ByteString> = [""]
    for entry in entries {
      let parent = entry.path.directoryPath
      if stored[parent] == nil { above.formUnion(Self.directories(above: entry.path)) }
      let directory = try Directory.make(path: root.appending(parent))
      guard let name = entry.path.lastComponent else { continue }
      if entry.type == "directory" {
        try directory.createDirectory(name)
      } else {
        let source = try Directory.open(path: entry.realPath.directoryPath)
        try directory.createHardLink(name, to: entry.realPath.lastComponent ?? "", in: source)
      }
    }
    for entry in entries.reversed() where entry.type == "directory" {
      try Self.copyMetadata(from: entry.realPath, to: root.appending(entry.path))
    }
    for path in above.sorted().reversed() { try Self.setMadeUp(root.appending(path)) }
  }

  private static func directories(above path: ByteString) -> [ByteString] {
    var found: [ByteString] = []
    var path = path.directoryPath
    while !path.isEmpty {
      found.append(path)
      path = path.directoryPath
    }
    return found
  }

  private static func copyMetadata(from source: ByteString, to target: ByteString) throws {
    let source = try Directory.open(path: source)
    let target = try Directory.open(path: target)
    let status = try source.status()
    if Host.userID == 0 { try target.setOwner(user: status.user, group: status.group) }
    for name in try source.attributes.names() {
      try target.attributes.set(name, to: try source.attributes.value(of: name) ?? [])
    }
    try target.setPermissions(status.permissions)
    try target.setModified(status.modified)
  }

  /// The directories above containers do not exist on any device: their metadata is always the
  /// same.
  private static func setMadeUp(_ path: ByteString) throws {
    let directory = try Directory.open(path: path)
    if Host.userID == 0 { try directory.setOwner(user: 0, group: 0) }
    try directory.setPermissions(0o755)
    try directory.setModified(Timestamp(seconds: 0))
  }
}
