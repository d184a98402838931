internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension TreeEntry {
  /// The bytes of a file, nil for what is none.
  var contentSize: UInt64? {
    if case .file(let content) = node { return content.size }
    return nil
  }

  /// Whether the entry was on a device: the folders above containers exist in snapshots only, and
  /// bear no time.
  var isOfDevice: Bool { modified != Timestamp(seconds: 0) }

  /// The kind and the mode as `ls` writes them: `drwxr-xr-x`.
  var modeText: String {
    let bits: [(UInt16, String)] = [
      (0o400, "r"), (0o200, "w"), (0o100, "x"), (0o040, "r"), (0o020, "w"), (0o010, "x"),
      (0o004, "r"), (0o002, "w"), (0o001, "x"),
    ]
    var text = bits.map { permissions & $0.0 != 0 ? $0.1 : "-" }
    for (bit, place, set, unset) in [
      (UInt16(0o4000), 2, "s", "S"), (0o2000, 5, "s", "S"), (0o1000, 8, "t", "T"),
    ] where permissions & bit != 0 {
      text[place] = text[place] == "x" ? set : unset
    }
    return kindLetter + text.joined()
  }

  private var kindLetter: String {
    switch node {
    case .file: "-"
    case .directory: "d"
    case .symlink: "l"
    case .fifo: "p"
    case .socket: "s"
    case .characterDevice: "c"
    case .blockDevice: "b"
    }
  }

  /// The kind as JSON names it.
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

  /// What stands behind the path in a listing: a slash, or a link's target.
  var suffix: String {
    switch node {
    case .directory: "/"
    case .symlink(let target): " -> \(target)"
    default: ""
    }
  }

  /// The entry as a line of `ls --json`.
  func json(at path: ByteString) -> JSON {
    var members = JSON.path(path)
    members.append(JSON.Member("type", .string(kindName)))
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
    return .object(members)
  }
}

extension JSON {
  /// A path's members: `path`, and `path_b64` with its bytes where they are not UTF-8.
  static func path(_ path: ByteString, named name: String = "path") -> [JSON.Member] {
    if let text = path.utf8 { return [JSON.Member(name, .string(text))] }
    return [
      JSON.Member(name, .string(path.description)),
      JSON.Member(name + "_b64", .string(Base64.encode(Array(path.bytes)))),
    ]
  }
}
