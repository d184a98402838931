internal import SystemIO

/// Finds out whether a mirror is the repository itself, reached in another way, or within it.
///
/// A directory of this host is known by its device and inode, whatever its name. On another host a
/// run finds it out by its lease, before it copies anything; a dry run, which writes nothing, can
/// only rule it out.
extension RepositoryMirror {
  /// A place that no mirror may be.
  public enum Place: String, Sendable {
    case repository = "the repository itself"
    case inRepository = "within the repository itself"
  }

  /// Checks that source and target are not the same directory of this host.
  func requireAnotherDirectory() throws(StoreError) {
    guard let to = target, let identity = try to.directoryIdentity() else { return }
    guard try source.storage.directoryIdentity() != identity else {
      throw refusal(asIs: .repository, to)
    }
  }

  private func refusal(asIs place: Place, _ target: RepositoryStorage) -> StoreError {
    StoreError(
      .invalid, "mirror the repository to", subject: target.location,
      reason: "it is \(place.rawValue)", hint: "name another directory with '--to'")
  }

  /// Checks that the original does not see a lease of the mirror. Otherwise they are the same
  /// place, which is reached in another way or by another name of its host, or the mirror is within
  /// the original.
  func requireDifferent(
    _ target: RepositoryStorage, seenBy lease: Lease, isNew: Bool
  ) throws(StoreError) {
    func isSeen(below place: ObjectPath) -> Bool {
      let names = lease.path.components + [LeaseStatus.Owner.sign]
      // Whoever may only read the original may be denied what does not exist.
      return (try? source.storage.status(names.reduce(place) { $0.appending($1) })) != nil
    }
    // A place without the id of the original is another one.
    if !isNew, isSeen(below: .root) { throw refusal(asIs: .repository, target) }
    if let place, isSeen(below: place) {
      throw refusal(asIs: .inRepository, target)
    }
  }

  /// Returns the place that a target on another host may be, as far as can be found out without a
  /// lease; nil if it is another one, and for directories of this host, which are compared.
  ///
  /// A mirror has its own record and its own `repository.json`, which was written later than that
  /// of the original. So only a copy by other means that keeps times seems to be the repository.
  func possiblePlace(isNew: Bool, record: MirrorRecord?) throws(StoreError) -> Place? {
    guard let target, !isNew else { return place == nil ? nil : .inRepository }
    if try target.directoryIdentity() != nil, try source.storage.directoryIdentity() != nil {
      return nil
    }
    // Whoever may only read some objects of the original may be denied what does not exist.
    let own = try? MirrorRecord.load(source.storage)
    if let record, record != own { return nil }
    let path = RepositoryLayout.settings
    guard let one = try source.storage.status(path), let other = try target.status(path),
      one.size == other.size, one.modified.seconds == other.modified.seconds
    else { return nil }
    return .repository
  }
}
