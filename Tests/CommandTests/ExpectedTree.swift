import SystemIO
import TestSupport

/// The tree that a whole snapshot of a device has to come back as: what its policy keeps, and the
/// folders on the way to it, at logical paths.
struct ExpectedTree {
  /// What is in it, by logical path.
  private(set) var stored: [ByteString: ClassifiedEntry] = [:]

  init(_ entries: [ClassifiedEntry]) {
    let all = Dictionary(entries.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    for entry in entries where entry.isKept {
      var path = entry.path
      while let here = all[path], stored[path] == nil {
        stored[path] = here
        path = path.folderPath
      }
    }
  }

  /// Makes the tree: files are other names of the device's own, so that their metadata, holes and
  /// links among each other are the same and nothing is copied.
  func make(at root: ByteString) throws {
    let entries = stored.sorted { $0.key < $1.key }.map(\.value)
    var above: Set<ByteString> = [""]
    for entry in entries {
      let parent = entry.path.folderPath
      if stored[parent] == nil { above.formUnion(Self.folders(above: entry.path)) }
      let folder = try Folder.make(path: root.appending(parent))
      guard let name = entry.path.lastComponent else { continue }
      if entry.type == "directory" {
        try folder.createFolder(name)
      } else {
        let source = try Folder.open(path: entry.realPath.folderPath)
        try folder.createHardLink(name, to: entry.realPath.lastComponent ?? "", in: source)
      }
    }
    for entry in entries.reversed() where entry.type == "directory" {
      try Self.copyMetadata(from: entry.realPath, to: root.appending(entry.path))
    }
    for path in above.sorted().reversed() { try Self.setMadeUp(root.appending(path)) }
  }

  private static func folders(above path: ByteString) -> [ByteString] {
    var found: [ByteString] = []
    var path = path.folderPath
    while !path.isEmpty {
      found.append(path)
      path = path.folderPath
    }
    return found
  }

  private static func copyMetadata(from source: ByteString, to target: ByteString) throws {
    let source = try Folder.open(path: source)
    let target = try Folder.open(path: target)
    let status = try source.status()
    if Host.userID == 0 { try target.setOwner(user: status.user, group: status.group) }
    for name in try source.attributes.names() {
      try target.attributes.set(name, to: try source.attributes.value(of: name) ?? [])
    }
    try target.setPermissions(status.permissions)
    try target.setModified(status.modified)
  }

  /// The folders above containers exist on no device: their metadata is always the same.
  private static func setMadeUp(_ path: ByteString) throws {
    let folder = try Folder.open(path: path)
    if Host.userID == 0 { try folder.setOwner(user: 0, group: 0) }
    try folder.setPermissions(0o755)
    try folder.setModified(Timestamp(seconds: 0))
  }
}
