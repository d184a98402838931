internal import Codecs
internal import SystemIO

extension RepositoryCheck.Run {
  /// Returns what is lost if no snapshot exists, although this host knows some and there are packs;
  /// nil if nothing is.
  ///
  /// If only some of the known snapshots exist, another host has removed the others. It removes the
  /// last ones only on request, usually with a prune that removes the packs. This host then no
  /// longer knows those that it has removed.
  func lostSnapshots() -> String? {
    let packs = Set(inventory.packs.keys).subtracting(condemnedPacks)
    guard inventory.snapshots.isEmpty, !inventory.obstructedDirectories.contains(Self.directory),
      !packs.isEmpty, let known = check.headCache?.known, let newest = known.last
    else { return nil }
    let names = known.suffix(3).reversed().map { head in
      "\(head.id.hex.prefix(8)) of '\(ByteString(head.host))' (\(head.time.rfc3339))"
    }
    let more = known.count > 3 ? " and \(known.count - 3) more" : ""
    let count =
      newest.id == known.first?.id
      ? "the snapshot that this host knows does not exist"
      : "none of the \(known.count) snapshots that this host knows exists"
    return "\(count): \(names.joined(separator: ", "))\(more)"
  }

  private static var directory: ObjectPath { RepositoryLayout.snapshots }
}
