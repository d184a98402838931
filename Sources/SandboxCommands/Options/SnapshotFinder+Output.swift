internal import ArchiveStore
internal import Codecs
internal import Restore
internal import SnapshotQueries
internal import SystemIO

extension SnapshotFinder {
  /// Creates a finder that reports to a console.
  convenience init(_ repository: Repository, _ console: Console) {
    // A container is usually in every snapshot of its device.
    var reported: Set<ByteString> = []
    self.init(repository, cache: repository.hostHeadCache) { $0.show(console, &reported) }
  }
}

extension Repository {
  /// Returns the snapshots that a command names, or nil, which stands for all, if it names none.
  func snapshots(named names: [String], _ console: Console) throws -> Set<SnapshotID>? {
    if names.isEmpty { return nil }
    let finder = SnapshotFinder(self, console)
    return Set(try names.map { try finder.find(SnapshotName($0)).id })
  }
}

extension Console {
  /// Warns if restores refuse a snapshot that this host has just made.
  func warn(ofRefused made: StoredSnapshot?, in repository: Repository) {
    guard let made, let refusal = repository.refusal(of: made) else { return }
    if case .untrusted(let signer) = refusal {
      // The key of a first snapshot is trusted from the next command on.
      guard repository.trust.revoked.contains(signer) else { return }
      warning("restores refuse the snapshot: this host's signer \(signer) is not trusted")
      hint("'sandboxctl key trust' trusts it again")
    } else {
      warning(
        "the snapshot is not signed, so restores refuse it: this host's signing key cannot be used")
    }
  }
}

extension SnapshotFinder.Remark {
  /// Reports the remark.
  ///
  /// - Parameter reported: the paths of the invalid containers that were reported.
  fileprivate func show(_ console: Console, _ reported: inout Set<ByteString>) {
    switch self {
    case .skipped(let error): console.skipped(error.description, because: error)
    case .unreadable(let path, let stored, let error):
      console.skipped("\(path)\([stored.id].shortNames): \(error.reason)", because: error)
    case .otherDevices(let others, let found, let text):
      let hasHosts = others.contains { $0.host != found.host }
      let names = others.prefix(3).map { $0.nameOfDevice(withHost: hasHosts) }
      let more = others.count > 3 ? " and \(Sizes.count(others.count - 3)) more" : ""
      console.warning(
        "'\(text)' is \(found.nameOfDevice(withHost: hasHosts)); other devices have "
          + names.joined(separator: ", ") + more)
      console.hint("give a snapshot's id to choose the device: 'sandboxctl snapshots' lists them")
    case .future(let found, let other, let text):
      console.warning(
        "'\(text)' is \(found.id.hex.prefix(8)), which is dated in the future "
          + "(\(Times.text(found.time))): \(other.id.hex.prefix(8)) (\(Times.text(other.time))) may "
          + "be newer")
      console.hint(
        "check this host's clock; if it is right, name the other one by its id, and remove the "
          + "first one with 'sandboxctl forget \(found.id.hex.prefix(8))' if you do not need it")
    case .untrusted(let found, let refusal):
      console.warning("the snapshot \(found.id.hex.prefix(8)) is not trusted: \(refusal.reason)")
    case .found(let found):
      for (path, reason) in found.device.unusableContainers where reported.insert(path).inserted {
        console.warning(
          "the snapshot \(found.id.hex.prefix(8)) has an invalid container: '\(path)': \(reason)")
      }
    }
  }
}

extension SnapshotHead {
  /// Returns the short id and the device.
  fileprivate func nameOfDevice(withHost: Bool) -> String {
    let host = withHost ? " on '\(ByteString(host))'" : ""
    return "\(id.hex.prefix(8)) of '\(device.root)'\(host)"
  }
}

extension [SnapshotID] {
  /// The short ids, to append to an object: `  (83023a3e, fb294b20 and 3 more)`.
  var shortNames: String {
    let names = prefix(3).map { String($0.hex.prefix(8)) }.joined(separator: ", ")
    return "  (\(names)\(count > 3 ? " and \(Sizes.count(count - 3)) more" : ""))"
  }

  /// The ids as JSON.
  var json: JSON { .array(map { .string($0.hex) }) }
}
