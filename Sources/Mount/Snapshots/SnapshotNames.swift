internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The names of snapshots in the mount: their times in UTC, to the second, in the form that
/// commands accept. If several have the same time, the short id is added to all but the first.
struct SnapshotNames {
  private var names: [SnapshotID: ByteString] = [:]
  private var used: Set<ByteString> = []

  /// Returns the names of listed snapshots. A snapshot keeps the name that it had before.
  mutating func update(_ heads: [SnapshotHead]) -> [SnapshotID: ByteString] {
    let listed = Set(heads.map(\.id))
    for (id, name) in names where !listed.contains(id) {
      names[id] = nil
      used.remove(name)
    }
    for head in heads where names[head.id] == nil {
      let plain = Self.name(of: head.time)
      let all = [plain, "\(plain)-\(head.id.hex.prefix(8))", "\(plain)-\(head.id.hex)"]
      guard let name = all.lazy.map({ ByteString($0) }).first(where: { !used.contains($0) }) else {
        continue
      }
      used.insert(name)
      names[head.id] = name
    }
    return names
  }

  private static func name(of time: Timestamp) -> String {
    String(Timestamp(seconds: time.seconds).rfc3339.map { $0 == ":" ? "." : $0 })
  }
}
