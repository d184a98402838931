internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension TreeEntry {
  /// The size of a regular file in bytes; nil for other entries.
  var contentSize: UInt64? {
    if case .file(let content) = node { return content.size }
    return nil
  }

  /// The type in JSON.
  var kindName: String {
    switch node {
    case .file: "file"
    case .directory: "directory"
    case .symlink: "symlink"
    case .fifo: "fifo"
    case .socket: "socket"
    case .characterDevice: "character-device"
    case .blockDevice: "block-device"
    }
  }

  /// Returns the entry as a line of `ls --json`.
  func json(at path: ByteString) -> JSON { .object(JSON.path(path) + jsonMembers) }

  /// The members of a line of `ls --json`, except the path.
  var jsonMembers: [JSON.Member] {
    var members = [JSON.Member("type", .string(kindName))]
    if let size = contentSize {
      members.append(JSON.Member("size", .integer(Int64(clamping: size))))
    }
    if case .symlink(let target) = node { members += JSON.path(target, named: "target") }
    members += [
      JSON.Member("mode", .integer(Int64(permissions))), JSON.Member("uid", .integer(Int64(owner))),
      JSON.Member("gid", .integer(Int64(group))),
      JSON.Member("modified", .string(modified.rfc3339)),
    ]
    if let linkGroup { members += JSON.path(linkGroup, named: "link_group") }
    return members
  }
}

extension JSON {
  /// Returns a path's members: `path`, and `path_b64` with its bytes if they are not UTF-8.
  static func path(_ path: ByteString, named name: String = "path") -> [JSON.Member] {
    if let text = path.utf8 { return [JSON.Member(name, .string(text))] }
    return [
      JSON.Member(name, .string(path.description)),
      JSON.Member(name + "_b64", .string(Base64.encode(Array(path.bytes)))),
    ]
  }
}
