internal import ArchiveStore
package import Codecs
package import SystemIO

/// A snapshot of another backup program, as its list describes it.
///
/// The list comes from a repository that another user may have written, so nothing in it is
/// trusted: the ID is hexadecimal, other texts have limits and no control characters.
package struct PeerSnapshot: Hashable, Sendable {
  /// The ID in lowercase hexadecimal digits: 64 for restic and borg, 32 for kopia.
  package let id: String
  /// The name of a borg archive; empty for other programs.
  package let name: String
  package let time: Timestamp
  /// The host and the user that made it; empty if they are not recorded.
  package let host: String
  package let user: String
  /// The paths that were backed up, if they are recorded.
  package let paths: [String]
  package let tags: [String]
  /// The metadata of the root directory if the archive does not contain it and begins below it.
  package let root: Root?

  /// The metadata of a directory.
  package struct Root: Hashable, Sendable {
    package let permissions: UInt16
    package let owner: UInt32
    package let group: UInt32
    package let modified: Timestamp
  }
}

extension PeerSnapshot {
  /// The maximum number of paths and of tags, and the maximum length of a text in bytes.
  static let countLimit = 1000
  static let textLimit = 4096

  /// The tag of its snapshot in a repository, which identifies it to later runs.
  package func reference(_ kind: PeerKind) -> String { "\(kind.rawValue):\(id)" }

  /// The tags of its snapshot in a repository: its own, the name, and the reference. Tags that look
  /// like references are omitted because they would keep other snapshots from being imported.
  package func allTags(_ kind: PeerKind) -> [String] {
    let own = (name.isEmpty ? tags : tags + [name]).filter { !Self.isReference($0) }
    return own + [reference(kind)]
  }

  private static func isReference(_ tag: String) -> Bool {
    PeerKind.allCases.contains { kind in
      guard tag.utf8.starts(with: "\(kind.rawValue):".utf8) else { return false }
      return isID(tag.utf8.dropFirst(kind.rawValue.utf8.count + 1))
    }
  }

  /// Whether a text is an ID: 16 to 128 hexadecimal digits.
  static func isID(_ text: some Collection<UInt8>) -> Bool {
    (16...128).contains(text.count)
      && text.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
      }
  }

  /// The source of which the snapshot is a state: the host with the user and the paths, or with the
  /// constant part of the archive's name. Retention applies to the states of each source.
  package func source(_ kind: PeerKind) -> String {
    let rest = kind == .borg ? series : paths.sorted().joined(separator: ",")
    let text = "\(kind.rawValue):\(user)@\(host.isEmpty ? "unknown" : host):\(rest)"
    guard text.utf8.count > Self.sourceLimit else { return text }
    return "\(kind.rawValue):\(Blake2b.hash(Array(text.utf8)).hex)"
  }

  /// The maximum length of a source in bytes; a longer one is replaced by its hash.
  private static let sourceLimit = 1024
  /// The minimum number of digits of a date in a name.
  private static let dateDigits = 6

  /// The name without the date at its end: `home` for `home-2026-01-02T03:04:05`.
  private var series: String {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    let marks = Array("-_.:+TZ ".utf8)
    let bytes = Array(name.utf8)
    let end = bytes.lastIndex { !digits.contains($0) && !marks.contains($0) }.map { $0 + 1 } ?? 0
    let count = bytes[end...].count { digits.contains($0) }
    guard count >= Self.dateDigits else { return name }
    return String(decoding: bytes[..<end], as: UTF8.self)
  }
}

// MARK: - Reading

extension PeerSnapshot {
  /// The snapshots in a list, and the elements that are not snapshots.
  package struct List: Sendable {
    /// The snapshots, the oldest first.
    package var snapshots: [PeerSnapshot] = []
    /// The number of incomplete snapshots, which are not imported.
    package var incomplete = 0
    /// The reasons why elements of the list are not snapshots that can be imported.
    package var faults: [String] = []
  }

  /// Reads the JSON list of a program.
  ///
  /// - Throws: `CodecError` if it is not a list of JSON.
  package static func list(_ kind: PeerKind, _ text: [UInt8]) throws(CodecError) -> List {
    let json = try JSON(parsing: text)
    guard let elements = kind == .borg ? json["archives"]?.array : json.array else {
      throw CodecError(.malformed, in: .json, reason: "it is not a list of snapshots")
    }
    var list = List()
    var seen: Set<String> = []
    for element in elements {
      if kind == .kopia, !(element["incomplete"]?.string ?? "").isEmpty {
        list.incomplete += 1
        continue
      }
      do throws(ElementFault) {
        let snapshot = try PeerSnapshot(kind, element)
        if seen.insert(snapshot.id).inserted { list.snapshots.append(snapshot) }
      } catch {
        if list.faults.count < countLimit { list.faults.append(error.reason) }
      }
    }
    list.snapshots.sort { ($0.time, $0.id) < ($1.time, $1.id) }
    return list
  }

  /// The reason why an element of a list is not a snapshot.
  private struct ElementFault: Error { let reason: String }

  private init(_ kind: PeerKind, _ json: JSON) throws(ElementFault) {
    guard let id = json["id"]?.string, Self.isID(id.utf8) else {
      throw ElementFault(reason: "a snapshot without an ID of hexadecimal digits")
    }
    guard let time = json[Self.timeName(of: kind)]?.string.flatMap({ Self.time($0) }) else {
      throw ElementFault(reason: "the snapshot \(id.prefix(8)), which has no valid time")
    }
    self.id = id
    self.time = time
    let source = kind == .kopia ? json["source"] ?? .null : json
    name = try kind == .borg ? Self.archiveName(json) : ""
    host = Self.text(source[kind == .kopia ? "host" : "hostname"])
    user = Self.text(source[kind == .kopia ? "userName" : "username"])
    switch kind {
    case .restic:
      paths = Self.texts(json["paths"])
      tags = Self.texts(json["tags"])
    case .borg: (paths, tags) = ([], [])
    case .kopia:
      paths = [Self.text(source["path"])].filter { !$0.isEmpty }
      tags = Self.kopiaTags(json["tags"])
    }
    root = kind == .kopia ? Root(kopia: json["rootEntry"]) : nil
  }

  private static func timeName(of kind: PeerKind) -> String {
    switch kind {
    case .restic: "time"
    case .borg: "start"
    case .kopia: "startTime"
    }
  }

  /// Parses a time of RFC 3339; one without an offset is in UTC. Nil for other text, and for a time
  /// that a snapshot cannot have: its year must have four digits in UTC.
  static func time(_ text: String) -> Timestamp? {
    guard let time = Timestamp(rfc3339: text) ?? Timestamp(rfc3339: text + "Z"),
      Timestamp(rfc3339: time.rfc3339) == time
    else { return nil }
    return time
  }

  /// The name of a borg archive, which becomes a part of an argument.
  private static func archiveName(_ json: JSON) throws(ElementFault) -> String {
    let name = text(json["name"])
    guard !name.isEmpty, !name.utf8.contains(ByteString.slash) else {
      throw ElementFault(
        reason: "the archive '\(ByteString(json["name"]?.string ?? ""))', which has no valid name")
    }
    return name
  }

  /// A text without control characters and with at most `textLimit` bytes, otherwise an empty text.
  private static func text(_ json: JSON?) -> String {
    guard let text = json?.string, text.utf8.count <= textLimit,
      !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
    else { return "" }
    return text
  }

  private static func texts(_ json: JSON?) -> [String] {
    (json?.array ?? []).prefix(countLimit).map { text($0) }.filter { !$0.isEmpty }
  }

  /// The tags of kopia, which are pairs: `tag:env` with the value `prod` becomes `env:prod`.
  private static func kopiaTags(_ json: JSON?) -> [String] {
    (json?.members ?? []).prefix(countLimit).compactMap { member in
      let name = text(.string(member.name))
      let key = name.utf8.starts(with: "tag:".utf8) ? String(name.dropFirst(4)) : name
      let value = text(member.value)
      if key.isEmpty { return nil }
      return value.isEmpty ? key : "\(key):\(value)"
    }
  }
}

extension PeerSnapshot.Root {
  /// Reads a directory entry of kopia (`snapshot/manifest.go`): the mode is octal text, and 0 is
  /// omitted, as is the owner root. Nil if it is not a directory.
  fileprivate init?(kopia json: JSON?) {
    guard let json, json["type"]?.string == "d" else { return nil }
    permissions = UInt16(json["mode"]?.string ?? "", radix: 8).map { $0 & 0o7777 } ?? 0o755
    owner = json["uid"]?.integer.flatMap { UInt32(exactly: $0) } ?? 0
    group = json["gid"]?.integer.flatMap { UInt32(exactly: $0) } ?? 0
    modified = json["mtime"]?.string.flatMap { PeerSnapshot.time($0) } ?? Timestamp(seconds: 0)
  }
}
