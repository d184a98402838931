internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension [SnapshotID] {
  /// The short ids, to append to an object: `  (83023a3e, fb294b20 and 3 more)`.
  var shortNames: String {
    let names = prefix(3).map { String($0.hex.prefix(8)) }.joined(separator: ", ")
    return "  (\(names)\(count > 3 ? " and \(Sizes.count(count - 3)) more" : ""))"
  }

  /// The ids as JSON.
  var json: JSON { .array(map { .string($0.hex) }) }
}

extension Repository {
  /// Returns the named snapshots, or all if none is named.
  func snapshots(
    named names: [SnapshotName], _ console: Console
  ) throws -> SnapshotListing {
    if names.isEmpty { return try snapshots() }
    let finder = SnapshotFinder(self, console)
    return SnapshotListing(try names.map { try finder.find($0) })
  }
}

extension TreeEntry {
  /// Returns the entry as a line of `find --json`.
  func json(at path: ByteString, in snapshots: [StoredSnapshot]) -> JSON {
    .object(
      JSON.path(path) + jsonMembers + [
        JSON.Member("snapshots", snapshots.map(\.id).json),
        JSON.Member("devices", snapshots.deviceIdentities),
      ])
  }
}

extension PathVersion {
  /// The version as a line of `versions --json`.
  var json: JSON {
    var members = JSON.path(path) + entry.jsonMembers
    if let content = entry.contentID {
      members.append(JSON.Member("content", .string(content.hex)))
    }
    members.append(JSON.Member("snapshots", snapshots.map(\.id).json))
    members.append(JSON.Member("devices", snapshots.deviceIdentities))
    if let first = snapshots.first, let last = snapshots.last {
      members.append(JSON.Member("first_time", .string(first.snapshot.time.rfc3339)))
      members.append(JSON.Member("last_time", .string(last.snapshot.time.rfc3339)))
    }
    return .object(members)
  }
}

extension [StoredSnapshot] {
  /// The identities of their devices, each once, as JSON.
  var deviceIdentities: JSON {
    .array(SnapshotDevices(self).grouped(self).map { .string($0[0].snapshot.device.identity) })
  }
}
