internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SystemIO

extension JSON {
  /// Returns a name as text, escaped if it is not UTF-8; null if there is none.
  static func text(_ name: ByteString?) -> JSON {
    name.map { .string($0.utf8 ?? $0.description) } ?? .null
  }

  /// Returns a location in a policy file; null if there is none.
  static func location(_ location: PolicyLocation?) -> JSON {
    guard let location else { return .null }
    return [
      "file": .string(location.file), "line": .integer(Int64(location.line)),
      "column": .integer(Int64(location.column)),
    ]
  }

  /// Returns the members that locate replaced and removed data: the snapshot made before the
  /// operation, and its trash.
  static func kept(_ saved: StoredSnapshot?, trash: String?) -> [Member] {
    [
      Member("saved", saved.map { .string($0.id.hex) } ?? .null),
      Member("trash", trash.map { .string($0) } ?? .null),
    ]
  }
}

extension EntryTotals {
  /// The totals in text output: `3.1 GiB in 41,209 files`.
  var text: String { Sizes.text(bytes, in: files) }

  var json: JSON { ["files": .integer(Int64(files)), "bytes": .integer(Int64(clamping: bytes))] }
}

extension BackupDisposition {
  /// The mode if it is the same for all destinations, otherwise an object as in a policy file.
  var json: JSON {
    if cloud <= standard, unencrypted <= standard { return .string(standard.rawValue) }
    return [
      "default": .string(standard.rawValue), "cloud": .string(max(cloud, standard).rawValue),
      "unencrypted": .string(max(unencrypted, standard).rawValue),
    ]
  }
}

extension PurgeDisposition {
  /// The word `never`, or the terms.
  var json: JSON {
    guard let terms else { return "never" }
    return [
      "order": .integer(Int64(terms.order)), "when": .string(terms.when.rawValue),
      "unit": .string(terms.unit.rawValue), "action": .string(terms.action.rawValue),
    ]
  }

  /// The disposition as a word for a column: `never`, `anytime`, `order 20`.
  var word: String {
    guard let terms else { return "never" }
    return self == .anytime ? "anytime" : "order \(terms.order)"
  }
}

extension FileKind {
  /// The type in JSON.
  var word: String {
    switch self {
    case .file: "file"
    case .directory: "directory"
    case .symlink: "symlink"
    case .fifo: "fifo"
    case .socket: "socket"
    case .characterDevice: "character-device"
    case .blockDevice: "block-device"
    }
  }
}
